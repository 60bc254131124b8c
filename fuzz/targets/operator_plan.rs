#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    uturn_fuzz::operator::operator_plan(data);
});
