#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    uturn_fuzz::cloud::cloud_answer(data);
});
