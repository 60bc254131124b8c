//! Health checks: reads them from requests, with the defaults of their listener or rule, and
//! converts them for answers.

use std::ops::RangeInclusive;

use uturn_cloud_api::clb;
use uturn_cloud_api::wire::error::{ApiError, ErrorCode};

use super::check::{self, given, parameter_error, value_error};
use crate::state::{CheckType, HealthCheck, ProbeSourceType, Protocol};

/// The longest text of a custom probe.
const MAX_CONTEXT: usize = 500;
/// All five classes of HTTP status.
const ALL_CODES: u8 = 31;

/// The listener or rule of a health check, which determines the allowed kinds and the defaults.
#[derive(Clone, Copy, Debug)]
pub(super) struct Checked<'a> {
    /// The listener's protocol.
    pub(super) protocol: Protocol,
    /// A rule's protocol towards targets.
    pub(super) forward_type: Option<&'a str>,
    /// Whether the load balancer's targets have IPv6 addresses.
    pub(super) is_v6: bool,
}

impl Checked<'_> {
    fn kinds(self) -> &'static [CheckType] {
        use CheckType::{Custom, Grpc, Http, Https, Ping, Tcp};
        match self.protocol {
            Protocol::Tcp => &[Tcp, Http, Custom],
            Protocol::Udp => &[Ping, Custom],
            Protocol::TcpSsl | Protocol::Quic => &[Tcp, Http],
            // INF: the schema lacks TCP here, but the controllers' configuration has it.
            Protocol::Http => &[Http, Grpc, Tcp],
            Protocol::Https => &[Http, Https, Grpc, Tcp],
        }
    }

    fn default(self) -> HealthCheck {
        let check_type = match (self.protocol, self.forward_type) {
            (Protocol::Udp, _) => CheckType::Ping,
            (Protocol::Tcp | Protocol::TcpSsl | Protocol::Quic, _) => CheckType::Tcp,
            (Protocol::Https, Some("HTTPS")) => CheckType::Https,
            (Protocol::Https, Some("GRPC" | "GRPCS")) => CheckType::Grpc,
            (Protocol::Http | Protocol::Https, _) => CheckType::Http,
        };
        HealthCheck {
            enabled: true,
            timeout: 2,
            interval: 5,
            rise: 3,
            fall: 3,
            check_type,
            port: None,
            http_codes: ALL_CODES,
            http_path: None,
            http_domain: None,
            http_method: None,
            http_version: None,
            context_type: None,
            send: None,
            expect: None,
            grpc_codes: None,
            source: if self.is_v6 { ProbeSourceType::Vip } else { ProbeSourceType::Reserved },
        }
    }
}

/// Returns the health check that results from a request. Settings that the request leaves out stay
/// as they are in `current`, or get their defaults.
pub(super) fn read(
    input: Option<&clb::HealthCheck>,
    current: Option<&HealthCheck>,
    checked: Checked<'_>,
) -> Result<HealthCheck, ApiError> {
    let mut result = current.cloned().unwrap_or_else(|| checked.default());
    let Some(input) = input else { return Ok(result) };
    read_numbers(input, &mut result, checked)?;
    read_http(input, &mut result)?;
    read_custom(input, &mut result)?;
    check_kind(&result, checked)?;
    Ok(result)
}

fn read_numbers(
    input: &clb::HealthCheck,
    result: &mut HealthCheck,
    checked: Checked<'_>,
) -> Result<(), ApiError> {
    if let Some(switch) = input.health_switch {
        result.enabled = check::switch("HealthCheck.HealthSwitch", switch)?;
    }
    number("TimeOut", input.time_out, 2..=60, &mut result.timeout)?;
    let shortest = if checked.is_v6 { 5 } else { 2 };
    number("IntervalTime", input.interval_time, shortest..=300, &mut result.interval)?;
    number("HealthNum", input.health_num, 2..=10, &mut result.rise)?;
    number("UnHealthNum", input.un_health_num, 2..=10, &mut result.fall)?;
    number("HttpCode", input.http_code, 1..=ALL_CODES.into(), &mut result.http_codes)?;
    if result.enabled && result.timeout >= result.interval {
        let HealthCheck { timeout, interval, .. } = result;
        let message = format!("the timeout {timeout} is not shorter than the interval {interval}");
        return Err(value_error(message));
    }
    match input.check_port {
        None => {}
        // -1 is the target's own port. Some answers have 0 for it.
        Some(-1 | 0) => result.port = None,
        Some(port) => result.port = Some(check::port("HealthCheck.CheckPort", port)?),
    }
    if let Some(source) = input.source_ip_type {
        result.source = match check::switch("HealthCheck.SourceIpType", source)? {
            true if checked.is_v6 => {
                let message = "IPv6 load balancers probe from their own address (SourceIpType 0)";
                return Err(value_error(message));
            }
            true => ProbeSourceType::Reserved,
            false => ProbeSourceType::Vip,
        };
    }
    Ok(())
}

fn number<N: TryFrom<i64>>(
    member: &str,
    value: Option<i64>,
    allowed: RangeInclusive<i64>,
    result: &mut N,
) -> Result<(), ApiError> {
    let Some(value) = value else { return Ok(()) };
    let parameter = format!("HealthCheck.{member}");
    check::range(&parameter, value, allowed, ErrorCode::InvalidParameterValue)?;
    if let Ok(value) = N::try_from(value) {
        *result = value;
    }
    Ok(())
}

fn read_http(input: &clb::HealthCheck, result: &mut HealthCheck) -> Result<(), ApiError> {
    let text = |input: &Option<String>, result: &mut Option<String>| {
        if let Some(input) = input {
            *result = Some(input.clone()).filter(|text| !text.is_empty());
        }
    };
    if let Some(method) = given(input.http_check_method.as_ref()) {
        let method = method.to_ascii_uppercase();
        check::choice("HealthCheck.HttpCheckMethod", &method, &["HEAD", "GET"])?;
        result.http_method = Some(method);
    }
    if let Some(version) = given(input.http_version.as_ref()) {
        check::choice("HealthCheck.HttpVersion", version, &["HTTP/1.0", "HTTP/1.1"])?;
    }
    if let Some(path) = given(input.http_check_path.as_ref()) {
        check::length("HealthCheck.HttpCheckPath", path, 1..=200)?;
        if !path.starts_with('/') {
            return Err(value_error("the parameter `HealthCheck.HttpCheckPath` begins with /"));
        }
    }
    for (member, text) in [
        ("HttpCheckPath", input.http_check_path.as_ref()),
        ("HttpCheckDomain", input.http_check_domain.as_ref()),
        ("ExtendedCode", input.extended_code.as_ref()),
    ] {
        // The text becomes part of an HTTP request.
        let is_visible = |text: &String| text.bytes().all(|byte| byte.is_ascii_graphic());
        if text.is_some_and(|text| !is_visible(text)) {
            let message =
                format!("the parameter `HealthCheck.{member}` may have visible ASCII only");
            return Err(value_error(message));
        }
    }
    text(&input.http_check_path, &mut result.http_path);
    text(&input.http_check_domain, &mut result.http_domain);
    text(&input.http_version, &mut result.http_version);
    text(&input.extended_code, &mut result.grpc_codes);
    Ok(())
}

fn read_custom(input: &clb::HealthCheck, result: &mut HealthCheck) -> Result<(), ApiError> {
    if let Some(check_type) = given(input.check_type.as_ref()) {
        result.check_type = parse_type(check_type)?;
    }
    if let Some(context_type) = given(input.context_type.as_ref()) {
        check::choice("HealthCheck.ContextType", context_type, &["HEX", "TEXT"])?;
        result.context_type = Some(context_type.to_owned());
    }
    for (member, input, result) in [
        ("SendContext", &input.send_context, &mut result.send),
        ("RecvContext", &input.recv_context, &mut result.expect),
    ] {
        let Some(text) = given(input.as_ref()) else { continue };
        let parameter = format!("HealthCheck.{member}");
        check::length(&parameter, text, 1..=MAX_CONTEXT)?;
        if !text.bytes().all(|byte| byte.is_ascii_graphic() || byte == b' ') {
            let message = format!("the parameter `{parameter}` may have visible ASCII only");
            return Err(value_error(message));
        }
        *result = Some(text.to_owned());
    }
    Ok(())
}

/// Checks that the kind of a check is allowed for its listener or rule, and that the settings it
/// needs are there.
fn check_kind(result: &HealthCheck, checked: Checked<'_>) -> Result<(), ApiError> {
    let kinds = checked.kinds();
    if !kinds.contains(&result.check_type) {
        let kinds: Vec<&str> = kinds.iter().copied().map(name).collect();
        let protocol = checked.protocol.as_str();
        return Err(value_error(format!(
            "the health check {} is not for {protocol}, which has {}",
            name(result.check_type),
            kinds.join(", ")
        )));
    }
    let is_on_layer_4 = !checked.protocol.is_layer_7();
    if result.check_type == CheckType::Http && is_on_layer_4 && result.http_domain.is_none() {
        let message = "HttpCheckDomain cannot be None for an HTTP health check on layer 4";
        return Err(parameter_error(message));
    }
    if result.check_type == CheckType::Custom {
        let (Some(context_type), Some(send), Some(expect)) =
            (&result.context_type, &result.send, &result.expect)
        else {
            let message = "a CUSTOM health check needs ContextType, SendContext and RecvContext";
            return Err(parameter_error(message));
        };
        let is_hex = |text: &String| {
            let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'A'..=b'F');
            text.len().is_multiple_of(2) && text.bytes().all(is_digit)
        };
        if context_type == "HEX" && !(is_hex(send) && is_hex(expect)) {
            let message = "with ContextType HEX both texts are pairs of the digits 0-9 and A-F";
            return Err(value_error(message));
        }
    }
    Ok(())
}

fn parse_type(text: &str) -> Result<CheckType, ApiError> {
    const ALL: [CheckType; 6] = [
        CheckType::Tcp,
        CheckType::Http,
        CheckType::Https,
        CheckType::Grpc,
        CheckType::Ping,
        CheckType::Custom,
    ];
    let found = ALL.into_iter().find(|known| name(*known) == text);
    found.ok_or_else(|| {
        let names = ALL.map(name).join(", ");
        value_error(format!(
            "the parameter `HealthCheck.CheckType` is {text:?}, not one of {names}"
        ))
    })
}

fn name(check_type: CheckType) -> &'static str {
    match check_type {
        CheckType::Tcp => "TCP",
        CheckType::Http => "HTTP",
        CheckType::Https => "HTTPS",
        CheckType::Grpc => "GRPC",
        CheckType::Ping => "PING",
        CheckType::Custom => "CUSTOM",
    }
}

/// Returns a health check in the form of answers. `domain` is the host of a rule's probes unless
/// the check sets its own.
pub(super) fn view(check: &HealthCheck, domain: Option<&str>) -> clb::HealthCheck {
    let is_http = matches!(check.check_type, CheckType::Http | CheckType::Https);
    let is_grpc = check.check_type == CheckType::Grpc;
    let for_http = |text: &Option<String>, default: Option<&str>| {
        let text = text.clone().or_else(|| default.map(str::to_owned));
        text.filter(|_| is_http || is_grpc)
    };
    clb::HealthCheck {
        health_switch: Some(check.enabled.into()),
        time_out: Some(check.timeout.into()),
        interval_time: Some(check.interval.into()),
        health_num: Some(check.rise.into()),
        un_health_num: Some(check.fall.into()),
        http_code: is_http.then(|| check.http_codes.into()),
        http_check_path: for_http(&check.http_path, Some("/")),
        http_check_domain: for_http(&check.http_domain, domain),
        http_check_method: for_http(&check.http_method, Some("HEAD")),
        check_port: check.port.map(i64::from),
        context_type: check.context_type.clone(),
        send_context: check.send.clone(),
        recv_context: check.expect.clone(),
        check_type: Some(name(check.check_type).to_owned()),
        http_version: for_http(&check.http_version, None),
        source_ip_type: Some(match check.source {
            ProbeSourceType::Vip => 0,
            ProbeSourceType::Reserved => 1,
        }),
        extended_code: check.grpc_codes.clone().or_else(|| is_grpc.then(|| "12".to_owned())),
    }
}
