//! TCP addresses of flags.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

/// The port in advice.
const EXAMPLE_PORT: u16 = 8787;

const INVALID_PORT: &str = "the port is a number from 0 to 65535";

/// Reads an IP address and a port; `localhost` is 127.0.0.1.
pub(super) fn tcp_address(text: &str) -> Result<SocketAddr, String> {
    if let Ok(address) = text.parse() {
        return Ok(address);
    }
    if let Ok(address) = text.parse::<IpAddr>() {
        return Err(format!("a port is missing; write `{}`", SocketAddr::new(address, EXAMPLE_PORT)));
    }
    match text.rsplit_once(':') {
        Some(("localhost", port)) => {
            let port = port.parse().map_err(|_| INVALID_PORT)?;
            Ok(SocketAddr::from((Ipv4Addr::LOCALHOST, port)))
        }
        None if text == "localhost" => Err(format!("a port is missing; write `localhost:{EXAMPLE_PORT}`")),
        Some((host, _)) if host.parse::<IpAddr>().is_ok() => Err(INVALID_PORT.to_owned()),
        _ => Err(format!("write an IP address and a port, such as 127.0.0.1:{EXAMPLE_PORT}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tcp_address_has_an_ip_address_and_a_port() {
        assert_eq!(tcp_address("127.0.0.1:80").unwrap().to_string(), "127.0.0.1:80");
        assert_eq!(tcp_address("[::1]:80").unwrap().to_string(), "[::1]:80");
        assert_eq!(tcp_address("localhost:80").unwrap().to_string(), "127.0.0.1:80");
        for (text, expected) in [
            ("127.0.0.1", "a port is missing; write `127.0.0.1:8787`"),
            ("::1", "a port is missing; write `[::1]:8787`"),
            ("localhost", "a port is missing; write `localhost:8787`"),
            ("127.0.0.1:http", "the port is a number from 0 to 65535"),
            ("localhost:99999", "the port is a number from 0 to 65535"),
            ("example.com:80", "write an IP address and a port, such as 127.0.0.1:8787"),
            ("8787", "write an IP address and a port, such as 127.0.0.1:8787"),
        ] {
            assert_eq!(tcp_address(text).unwrap_err(), expected, "{text}");
        }
    }
}
