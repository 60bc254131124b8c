//! What clients meet behind load balancers of clouds, from manifests as the cloud's tools print them
//! to outcomes. Each cloud has a file; those of AWS and of clouds with proxies alone have tests of
//! their own.

#![allow(clippy::unwrap_used, reason = "what is wrong here fails the test")]

mod alibaba;
mod case;
mod huawei;
mod ibm;
mod oracle;
mod source_ranges;
