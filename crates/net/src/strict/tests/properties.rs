//! Properties of any input.

use super::{BAD, GOOD, in_pieces, verdict};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use std::fmt::Write as _;

/// Generates a valid request.
pub(crate) fn request() -> impl Strategy<Value = String> {
    let method = select(vec![
        "GET", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "M-SEARCH",
    ]);
    let target = "/[a-zA-Z0-9/._~?=&%-]{0,40}";
    let header = (
        "X-[A-Za-z0-9!#$%&'*+.^_`|~-]{0,20}",
        select(vec!["", " ", "\t", "  "]),
        "([!-~]([ -~]{0,40}[!-~])?)?",
        select(vec!["", " ", "\t"]),
    );
    (method, target, vec(header, 0..8), any::<Index>(), content()).prop_map(
        |(method, target, headers, at, (framing, content))| {
            let mut lines: Vec<String> = headers
                .into_iter()
                .map(|(name, before, value, after)| format!("{name}:{before}{value}{after}\r\n"))
                .collect();
            lines.insert(
                at.index(lines.len() + 1),
                "Host: example.com\r\n".to_owned(),
            );
            lines.insert(at.index(lines.len() + 1), framing);
            let lines = lines.concat();
            format!("{method} {target} HTTP/1.1\r\n{lines}\r\n{content}")
        },
    )
}

/// Generates the header that announces a body, and the body.
fn content() -> impl Strategy<Value = (String, String)> {
    let text = || "[ -~\r\n]{0,60}";
    prop_oneof![
        Just((String::new(), String::new())),
        text().prop_map(|text| (format!("Content-Length: {}\r\n", text.len()), text)),
        (vec(text(), 0..4), vec("X-[a-z]{1,8}: [a-z]{0,8}\r\n", 0..3)).prop_map(
            |(chunks, trailers)| {
                let mut content = String::new();
                for chunk in chunks.iter().filter(|chunk| !chunk.is_empty()) {
                    write!(content, "{:x}\r\n{chunk}\r\n", chunk.len()).unwrap();
                }
                let trailers = trailers.concat();
                write!(content, "0\r\n{trailers}\r\n").unwrap();
                ("Transfer-Encoding: chunked\r\n".to_owned(), content)
            }
        ),
    ]
}

/// Generates any input: valid requests and invalid ones in sequence, with some bytes changed.
pub(crate) fn anything() -> impl Strategy<Value = Vec<u8>> {
    let corpus = BAD.iter().map(|(_, bytes, _)| *bytes);
    let corpus: Vec<&str> = corpus
        .chain(GOOD.iter().map(|(_, bytes, _)| *bytes))
        .collect();
    let one = prop_oneof![
        3 => request(),
        1 => select(corpus).prop_map(str::to_owned),
    ];
    let byte = prop_oneof![
        3 => select(b"\r\n\0 \t:;,0159afHx+-_".to_vec()),
        1 => any::<u8>(),
    ];
    let changes = vec((any::<Index>(), byte, 0..3_u8), 0..3);
    (vec(one, 1..4), changes).prop_map(|(requests, changes)| {
        let mut bytes = requests.concat().into_bytes();
        for (at, byte, how) in changes {
            let at = at.index(bytes.len());
            match how {
                0 => bytes[at] = byte,
                1 => bytes.insert(at, byte),
                _ if bytes.len() > 1 => drop(bytes.remove(at)),
                _ => {}
            }
        }
        bytes
    })
}

proptest! {
    #[test]
    fn the_verdict_is_the_same_at_any_split(
        bytes in anything(),
        cuts in vec(any::<Index>(), 0..12),
    ) {
        let whole = verdict(&bytes).map(|reader| (reader.heads(), format!("{reader:?}")));
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
        cuts.extend([0, bytes.len()]);
        cuts.sort_unstable();
        let pieces = cuts.windows(2).map(|ends| &bytes[ends[0]..ends[1]]);
        let cut = in_pieces(pieces).map(|reader| (reader.heads(), format!("{reader:?}")));
        // The memory of an unfinished part differs; the result does not.
        let said = |it: Result<(u64, String), _>| it.map(|(heads, _)| heads);
        prop_assert_eq!(said(whole.clone()), said(cut));
        let single = bytes.chunks(1);
        prop_assert_eq!(said(whole), in_pieces(single).map(|reader| reader.heads()));
    }

    #[test]
    fn a_valid_request_passes(requests in vec(request(), 1..5)) {
        let reader = verdict(requests.concat().as_bytes());
        let reader = reader.map_err(|refused| TestCaseError::fail(format!("{refused:?}")))?;
        prop_assert_eq!(reader.heads(), requests.len() as u64);
        prop_assert!(reader.is_between());
    }
}
