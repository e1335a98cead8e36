//! Real lines with bytes inserted, removed and changed: no parser may panic for any input.

use super::*;
use crate::timestamps;
use proptest::prelude::*;

const SAMPLES: [&str; 4] = [
    include_str!("../../../tests/logs/combined.log"),
    include_str!("../../../tests/logs/common.log"),
    include_str!("../../../tests/logs/envoy.jsonl"),
    include_str!("../../../tests/logs/caddy.jsonl"),
];

fn read_all(line: &[u8]) {
    for format in [InputFormat::Trace, InputFormat::Combined, InputFormat::Json] {
        if let Err(fault) = format.read(line, &mut Event::default()) {
            assert!(fault.column(line) >= 1);
        }
    }
    let _ = detect::detect(line);
}

fn spoilt_line() -> impl Strategy<Value = Vec<u8>> {
    let lines: Vec<_> = SAMPLES.iter().flat_map(|sample| sample.lines()).collect();
    let spoil = (any::<prop::sample::Index>(), any::<u8>(), 0..3_u8);
    let spoils = prop::collection::vec(spoil, 0..4);
    (prop::sample::select(lines), spoils).prop_map(|(line, spoils)| {
        let mut line = line.as_bytes().to_vec();
        for (at, byte, how) in spoils {
            let at = at.index(line.len().max(1)).min(line.len());
            match how {
                0 => line.insert(at, byte),
                1 => line.truncate(at),
                _ => line.get_mut(at).into_iter().for_each(|it| *it = byte),
            }
        }
        line
    })
}

proptest! {
    #[test]
    fn no_line_makes_a_reader_panic(line in spoilt_line()) {
        read_all(&line);
    }

    #[test]
    fn no_bytes_make_a_reader_panic(line in prop::collection::vec(any::<u8>(), 0..80)) {
        read_all(&line);
    }

    #[test]
    fn no_text_makes_an_instant_panic(text in "[0-9TZ:.+/ eE-]{0,40}|\\PC{0,20}") {
        if let Some(at) = timestamps::any(&text) {
            prop_assert!(at <= timestamps::LATEST);
            prop_assert_eq!(timestamps::any(&timestamps::show(at)).map(|it| it.as_micros() / 1_000), Some(at.as_micros() / 1_000));
        }
    }
}
