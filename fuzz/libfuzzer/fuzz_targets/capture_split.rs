#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| plait_fuzz::capture_split(data));
