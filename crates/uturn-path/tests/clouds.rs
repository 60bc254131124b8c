//! What clients meet behind load balancers of clouds, from manifests as the cloud's tools print them
//! to outcomes. Each cloud has a file; those of AWS and of clouds with proxies alone have tests of
//! their own.

#![allow(clippy::unwrap_used, reason = "what is wrong here fails the test")]

#[path = "clouds/alibaba.rs"]
mod alibaba;
#[path = "clouds/case.rs"]
mod case;
#[path = "clouds/huawei.rs"]
mod huawei;
#[path = "clouds/ibm.rs"]
mod ibm;
#[path = "clouds/oracle.rs"]
mod oracle;
#[path = "clouds/source_ranges.rs"]
mod source_ranges;
