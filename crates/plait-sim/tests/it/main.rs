//! Whole runs of the world in virtual time: scenarios in, metrics out.

mod air;
mod apps;
mod bbr;
mod events;
mod golden;
mod guide;
mod ladder;
mod null_cipher;
mod paper_002;
mod scenarios;
mod schedulers;
mod steer;
mod swarm;
mod topology;
mod trace;
mod udp;
