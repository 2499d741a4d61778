//! Linux I/O for plait: TUN, UDP batches, netlink, namespaces.
