#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    uturn_fuzz::documents::lb_config(data);
});
