//! Link models and a discrete-event world around the core.
