//! Certificates: reads them from requests, by id or with their content, replaces them, and finds
//! their users.

pub(super) mod input;
pub(super) mod replace;
mod view;

pub(super) use self::input::read;
pub(super) use self::view::view;
