use super::fixtures::{all, limit};
use crate::limit::AddressRules;
use crate::matching::KeyRules;
use crate::{KeyPart, Limit, Request, Scratch};
use proptest::prelude::*;
use std::net::{IpAddr, Ipv6Addr};

fn key(address: IpAddr, ipv6_prefix: u8) -> String {
    let policy = all(vec![Limit {
        key: vec![KeyPart::Ip],
        ..limit("l")
    }]);
    let rules = KeyRules {
        address: AddressRules { ipv6_prefix },
        ..KeyRules::default()
    };
    let mut scratch = Scratch::default();
    let meeting = policy.meet(&Request::new().ip(address), &rules, &mut scratch);
    meeting.subject(&meeting.met[0]).to_owned()
}

#[test]
fn addresses_are_canonical() {
    let cases = [
        ("192.0.2.1", 64, "ip:192.0.2.1"),
        ("255.10.0.100", 64, "ip:255.10.0.100"),
        ("::ffff:192.0.2.1", 64, "ip:192.0.2.1"),
        ("2001:db8:0:1:2:3:4:5", 64, "ip:2001:db8:0:1::/64"),
        ("2001:db8::5", 64, "ip:2001:db8::/64"),
        ("2001:db8::5", 128, "ip:2001:db8::5"),
        ("2001:db8:1234::5", 36, "ip:2001:db8:1000::/36"),
        ("2001:db8::5", 0, "ip:::/0"),
    ];
    for (address, prefix, expected) in cases {
        assert_eq!(key(address.parse().unwrap(), prefix), expected);
    }
}

proptest! {
    #[test]
    fn ipv4_is_written_as_the_standard_library_does(bits: u32) {
        let address = IpAddr::V4(bits.into());
        prop_assert_eq!(key(address, 64), format!("ip:{address}"));
    }

    #[test]
    fn ipv6_is_written_as_the_standard_library_does(
        groups in prop::array::uniform8(prop_oneof![Just(0_u16), Just(1), any::<u16>()]),
    ) {
        let address = IpAddr::V6(Ipv6Addr::from(groups)).to_canonical();
        prop_assert_eq!(key(address, 128), format!("ip:{address}"));
    }
}
