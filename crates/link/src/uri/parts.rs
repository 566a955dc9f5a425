//! Cutting a URI into scheme, rest and options, with errors that name the part.

use std::ops::RangeInclusive;
use std::path::PathBuf;

use super::{Framing, NetUri, UriError};

/// The pieces of a URI, not yet checked against its scheme.
pub(super) struct Parts<'a> {
    pub(super) text: &'a str,
    pub(super) scheme: &'a str,
    pub(super) rest: &'a str,
    options: &'a str,
}

impl<'a> Parts<'a> {
    pub(super) fn split(text: &'a str) -> Result<Self, UriError> {
        let (scheme, rest) = text.split_once("://").unwrap_or(("", text));
        let (rest, options) = rest.split_once('?').unwrap_or((rest, ""));
        Ok(Self {
            text,
            scheme,
            rest,
            options,
        })
    }

    pub(super) fn refuse(
        &self,
        part: &'static str,
        value: &str,
        allowed: &'static str,
    ) -> UriError {
        refusal(self.text, part, value, allowed)
    }

    /// The `key=value` pairs; a key without a value or given twice is refused.
    pub(super) fn query(&self) -> Result<Query<'a>, UriError> {
        let mut pairs: Vec<(&str, &str)> = Vec::new();
        for option in self.options.split('&').filter(|option| !option.is_empty()) {
            let pair = option
                .split_once('=')
                .ok_or_else(|| self.refuse("option", option, "key=value"))?;
            if pairs.iter().any(|(key, _)| *key == pair.0) {
                return Err(self.refuse("option", pair.0, "each key once"));
            }
            pairs.push(pair);
        }
        Ok(Query {
            text: self.text,
            pairs,
        })
    }

    /// `host:port` or `[v6]:port`.
    pub(super) fn address(&self, text: &str, listen: Option<bool>) -> Result<NetUri, UriError> {
        let (host, port) = text
            .rsplit_once(':')
            .ok_or_else(|| self.refuse("address", text, "host:port"))?;
        Ok(NetUri {
            host: self.host(host)?.to_owned(),
            port: self.port(port)?,
            listen,
            clients: 1,
        })
    }

    fn host<'h>(&self, host: &'h str) -> Result<&'h str, UriError> {
        let bracketed = host
            .strip_prefix('[')
            .and_then(|host| host.strip_suffix(']'));
        let plain = (!host.contains([':', '[', ']', '/', '@'])).then_some(host);
        bracketed
            .filter(|v6| v6.parse::<std::net::Ipv6Addr>().is_ok())
            .or(plain)
            .filter(|host| !host.is_empty())
            .ok_or_else(|| {
                self.refuse(
                    "host",
                    host,
                    "a name, an IPv4 address or an IPv6 address in brackets",
                )
            })
    }

    fn port(&self, port: &str) -> Result<u16, UriError> {
        let number = port.parse().ok().filter(|port| *port > 0);
        number.ok_or_else(|| self.refuse("port", port, "1 to 65535"))
    }
}

/// The options that are not taken yet.
pub(super) struct Query<'a> {
    text: &'a str,
    pairs: Vec<(&'a str, &'a str)>,
}

impl Query<'_> {
    fn take(&mut self, key: &str) -> Option<&str> {
        let at = self.pairs.iter().position(|(name, _)| *name == key)?;
        Some(self.pairs.swap_remove(at).1)
    }

    pub(super) fn flag(&mut self, key: &'static str) -> Result<Option<bool>, UriError> {
        let text = self.text;
        match self.take(key) {
            None => Ok(None),
            Some("0") => Ok(Some(false)),
            Some("1") => Ok(Some(true)),
            Some(other) => Err(refusal(text, key, other, "0 or 1")),
        }
    }

    pub(super) fn path(&mut self, key: &'static str) -> Result<Option<PathBuf>, UriError> {
        let text = self.text;
        match self.take(key) {
            None => Ok(None),
            Some(path) if path.starts_with('/') => Ok(Some(path.into())),
            Some(other) => Err(refusal(text, key, other, "an absolute path")),
        }
    }

    pub(super) fn framing(&mut self) -> Result<Framing, UriError> {
        let text = self.text;
        match self.take("framing") {
            None | Some("cpx") => Ok(Framing::Cpx),
            Some("syslink") => Ok(Framing::Syslink),
            Some(other) => Err(refusal(text, "framing", other, "cpx or syslink")),
        }
    }

    pub(super) fn number(
        &mut self,
        key: &'static str,
        range: RangeInclusive<u64>,
        allowed: &'static str,
    ) -> Result<Option<u64>, UriError> {
        let text = self.text;
        let Some(value) = self.take(key) else {
            return Ok(None);
        };
        let number = value.parse().ok().filter(|number| range.contains(number));
        number
            .map(Some)
            .ok_or_else(|| refusal(text, key, value, allowed))
    }

    /// Refuses what is left over.
    pub(super) fn end(&self, allowed: &'static str) -> Result<(), UriError> {
        match self.pairs.first() {
            None => Ok(()),
            Some((key, _)) => Err(refusal(self.text, "option", key, allowed)),
        }
    }
}

fn refusal(uri: &str, part: &'static str, value: &str, allowed: &'static str) -> UriError {
    UriError {
        uri: uri.to_owned(),
        part,
        value: value.to_owned(),
        allowed,
    }
}
