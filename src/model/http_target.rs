//! Where http hooks may connect to: which addresses are public, and the targets that settings allow besides.

use std::{
    fmt,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
    str::FromStr,
};

use url::{Host, Url};

/// Networks of IPv4 that are not the public Internet (IANA's registry of special-purpose addresses, and multicast).
const SPECIAL_V4: [([u8; 4], u8); 15] = [
    ([0, 0, 0, 0], 8),
    ([10, 0, 0, 0], 8),
    ([100, 64, 0, 0], 10),
    ([127, 0, 0, 0], 8),
    ([169, 254, 0, 0], 16),
    ([172, 16, 0, 0], 12),
    ([192, 0, 0, 0], 24),
    ([192, 0, 2, 0], 24),
    ([192, 88, 99, 0], 24),
    ([192, 168, 0, 0], 16),
    ([198, 18, 0, 0], 15),
    ([198, 51, 100, 0], 24),
    ([203, 0, 113, 0], 24),
    ([224, 0, 0, 0], 4),
    ([240, 0, 0, 0], 4),
];

/// The same within `2000::/3`; nothing outside of that is public.
const SPECIAL_V6: [([u16; 8], u8); 3] = [
    ([0x2001, 0, 0, 0, 0, 0, 0, 0], 23),
    ([0x2001, 0xdb8, 0, 0, 0, 0, 0, 0], 32),
    ([0x3fff, 0, 0, 0, 0, 0, 0, 0], 20),
];

/// Whether an address belongs to the public Internet. Of an address that carries another one, as for translation
/// and tunnels, the one that it carries decides.
pub(crate) fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => {
            !SPECIAL_V4.iter().any(|(network, bits)| contains_v4((*network).into(), *bits, address))
        }
        IpAddr::V6(address) => match carried(address) {
            Some(inner) => is_public(inner.into()),
            None => {
                contains_v6(Ipv6Addr::new(0x2000, 0, 0, 0, 0, 0, 0, 0), 3, address)
                    && !SPECIAL_V6
                        .iter()
                        .any(|(network, bits)| contains_v6((*network).into(), *bits, address))
            }
        },
    }
}

/// The IPv4 address in one of IPv6: mapped, translated by NAT64, or of a 6to4 tunnel.
fn carried(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let low = |high: u16, low: u16| {
        let [a, b] = high.to_be_bytes();
        let [c, d] = low.to_be_bytes();
        Ipv4Addr::new(a, b, c, d)
    };
    match address.segments() {
        [0, 0, 0, 0, 0, 0xffff, a, b] | [0x64, 0xff9b, 0, 0, 0, 0, a, b] | [0x2002, a, b, ..] => {
            Some(low(a, b))
        }
        _ => None,
    }
}

fn contains_v4(network: Ipv4Addr, bits: u8, address: Ipv4Addr) -> bool {
    let shift = 32 - u32::from(bits);
    u32::from(network).checked_shr(shift) == u32::from(address).checked_shr(shift)
}

fn contains_v6(network: Ipv6Addr, bits: u8, address: Ipv6Addr) -> bool {
    let shift = 128 - u32::from(bits);
    u128::from(network).checked_shr(shift) == u128::from(address).checked_shr(shift)
}

/// A target that http hooks of workspaces may have although it is not public.
///
/// ```
/// use hookyard::model::HttpTarget;
///
/// for text in ["localhost:8377", "guard.internal", "[::1]:8377", "10.1.0.0/16"] {
///     assert_eq!(text.parse::<HttpTarget>().unwrap().to_string(), text);
/// }
/// assert!("http://localhost/".parse::<HttpTarget>().is_err());
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpTarget(TargetForm);

#[derive(Debug, Clone, PartialEq, Eq)]
enum TargetForm {
    /// A server as hooks write it, at one port or at all.
    Server { host: Host, port: Option<u16> },
    /// All addresses that begin with these bits.
    Network { address: IpAddr, bits: u8 },
}

/// A text is no target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("is neither a host, a host with its port, nor a network such as `10.1.0.0/16`")]
pub struct HttpTargetError;

impl FromStr for HttpTarget {
    type Err = HttpTargetError;

    fn from_str(text: &str) -> Result<Self, HttpTargetError> {
        if let Some((address, bits)) = text.split_once('/') {
            let address: IpAddr = address.parse().map_err(|_| HttpTargetError)?;
            let bits: u8 = bits.parse().map_err(|_| HttpTargetError)?;
            let most = if address.is_ipv4() { 32 } else { 128 };
            let form = TargetForm::Network { address, bits };
            return if bits <= most { Ok(Self(form)) } else { Err(HttpTargetError) };
        }
        if text.contains(['@', '?', '#', '\\', '%', '*'])
            || text.contains(|c: char| c.is_whitespace() || c.is_control())
        {
            return Err(HttpTargetError);
        }
        // An address alone is written without the brackets that it has in a URL.
        let host = match text.parse::<Ipv6Addr>() {
            Ok(address) => format!("[{address}]"),
            Err(_) => text.to_owned(),
        };
        let url = Url::parse(&format!("http://{host}/")).map_err(|_| HttpTargetError)?;
        let port = url.port().or_else(|| host.ends_with(":80").then_some(80));
        let host = url.host().ok_or(HttpTargetError)?.to_owned();
        Ok(Self(TargetForm::Server { host, port }))
    }
}

impl HttpTarget {
    /// Whether this is the server of a URL.
    pub(crate) fn is_server_of(&self, url: &Url) -> bool {
        match &self.0 {
            TargetForm::Server { host, port } => {
                url.host().is_some_and(|other| is_same(host, &other))
                    && port.is_none_or(|port| url.port_or_known_default() == Some(port))
            }
            TargetForm::Network { .. } => false,
        }
    }

    /// Whether this is a network that has the address.
    pub(crate) fn has_address(&self, address: IpAddr) -> bool {
        match (&self.0, address.to_canonical()) {
            (TargetForm::Network { address: IpAddr::V4(network), bits }, IpAddr::V4(address)) => {
                contains_v4(*network, *bits, address)
            }
            (TargetForm::Network { address: IpAddr::V6(network), bits }, IpAddr::V6(address)) => {
                contains_v6(*network, *bits, address)
            }
            _ => false,
        }
    }
}

/// Whether two hosts are the same; a name may end with the dot of the root.
fn is_same(one: &Host, other: &Host<&str>) -> bool {
    match (one, other) {
        (Host::Domain(one), Host::Domain(other)) => one.trim_end_matches('.') == other.trim_end_matches('.'),
        (Host::Ipv4(one), Host::Ipv4(other)) => one == other,
        (Host::Ipv6(one), Host::Ipv6(other)) => one == other,
        _ => false,
    }
}

impl fmt::Display for HttpTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            TargetForm::Server { host, port: Some(port) } => write!(f, "{host}:{port}"),
            TargetForm::Server { host: Host::Ipv6(address), port: None } => address.fmt(f),
            TargetForm::Server { host, port: None } => host.fmt(f),
            TargetForm::Network { address, bits } => write!(f, "{address}/{bits}"),
        }
    }
}

/// The address that a URL names itself, without a name to be resolved.
pub(crate) fn literal_address(url: &Url) -> Option<IpAddr> {
    match url.host()? {
        Host::Domain(_) => None,
        Host::Ipv4(address) => Some(address.into()),
        Host::Ipv6(address) => Some(address.into()),
    }
}

/// Whether the server of a URL is certainly not public: a literal address, or a name for this machine.
pub(crate) fn is_certainly_private(url: &Url) -> bool {
    match (literal_address(url), url.host()) {
        (Some(address), _) => !is_public(address),
        (None, Some(Host::Domain(name))) => {
            let name = name.trim_end_matches('.');
            name == "localhost" || name.ends_with(".localhost")
        }
        (None, _) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(host: &str) -> Url {
        Url::parse(&format!("http://{host}/")).unwrap()
    }

    #[test]
    fn every_spelling_of_this_machine_and_of_private_networks_is_private() {
        for host in [
            "127.0.0.1",
            "127.1",
            "127.0.1",
            "127.255.255.254",
            "2130706433",
            "0x7f000001",
            "0x7f.1",
            "0177.0.0.1",
            "017700000001",
            "127.0.0.1.",
            "0",
            "0.0.0.0",
            "０.０.０.０",
            "①②⑦.0.0.1",
            "[::]",
            "[::1]",
            "[0:0:0:0:0:0:0:1]",
            "[::ffff:127.0.0.1]",
            "[::ffff:7f00:1]",
            "[::127.0.0.1]",
            "[64:ff9b::127.0.0.1]",
            "[64:ff9b::a9fe:a9fe]",
            "[64:ff9b:1::1]",
            "[2002:7f00:1::]",
            "[2002:a00:1::1]",
            "[2001:0:4136:e378:8000:63bf:3fff:fdd2]",
            "[fe80::1]",
            "[fec0::1]",
            "[fc00::1]",
            "[fd12:3456::1]",
            "[ff02::1]",
            "[2001:db8::1]",
            "[3fff::1]",
            "[5f00::1]",
            "[100::1]",
            "10.0.0.1",
            "100.64.0.1",
            "169.254.169.254",
            "172.16.0.1",
            "172.31.255.255",
            "192.0.0.192",
            "192.168.0.1",
            "198.18.0.1",
            "224.0.0.1",
            "255.255.255.255",
            "localhost",
            "LOCALHOST",
            "localhost.",
            "ⓛocalhost",
            "x.localhost",
        ] {
            assert!(is_certainly_private(&url(host)), "{host}");
        }
        for host in [
            "8.8.8.8",
            "172.32.0.1",
            "100.128.0.1",
            "192.169.0.1",
            "[2606:4700::1111]",
            "[64:ff9b::8.8.8.8]",
            "[::ffff:8.8.8.8]",
            "[2002:808:808::1]",
            "example.com",
            "localhost.example.com",
        ] {
            assert!(!is_certainly_private(&url(host)), "{host}");
        }
    }

    #[test]
    fn targets_are_hosts_with_or_without_port_and_networks() {
        let is_server =
            |target: &str, host: &str| target.parse::<HttpTarget>().unwrap().is_server_of(&url(host));
        assert!(is_server("localhost", "localhost:81") && is_server("LocalHost.", "localhost"));
        assert!(is_server("localhost:80", "localhost") && !is_server("localhost:80", "localhost:81"));
        assert!(is_server("::1", "[::1]:9") && is_server("[::1]:9", "[0::1]:9"));
        assert!(is_server("127.0.0.1", "2130706433") && !is_server("127.0.0.1", "localhost"));
        assert!(!is_server("example.com", "a.example.com") && !is_server("10.0.0.0/8", "10.0.0.1"));
        let has = |target: &str, address: &str| {
            target.parse::<HttpTarget>().unwrap().has_address(address.parse().unwrap())
        };
        assert!(has("10.0.0.0/8", "10.9.9.9") && has("10.0.0.0/8", "::ffff:10.0.0.1"));
        assert!(!has("10.0.0.0/8", "11.0.0.1") && !has("10.0.0.1", "10.0.0.1"));
        assert!(has("0.0.0.0/0", "1.2.3.4") && !has("0.0.0.0/0", "::1") && has("::/0", "::1"));
        assert!(has("fd00::/8", "fd12::1") && !has("fd00::/8", "fe12::1"));
        for text in
            ["", "http://a", "a/b", "10.0.0.0/33", "::/129", "a:b", "a:99999", "u@a", "a b", "10.0.0.0/", "*"]
        {
            assert!(text.parse::<HttpTarget>().is_err(), "{text}");
        }
    }
}
