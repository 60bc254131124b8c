//! Certificates: read from requests, by id or with their content, replaced, and looked up.

pub(super) mod input;
pub(super) mod replace;
mod view;

pub(super) use self::input::read;
pub(super) use self::view::view;
