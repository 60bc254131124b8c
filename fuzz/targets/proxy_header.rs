#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    uturn_fuzz::proxy::proxy_header(data);
});
