//! Any bytes as commands of the Redis protocol, in any pieces: nothing panics, bounds hold, and the
//! pieces change nothing.
//!
//! How: the same bytes are read whole and in two pieces, by a client and by a stranger. Both ways give
//! the same commands, and the same end.

use tidegate_server::resp::parse::{CommandBounds, Parsed, Parser};

const COMMAND_BYTES: usize = 64 << 10;

/// Commands as lists of words, and what was wrong at the end.
type Read = (Vec<Vec<Vec<u8>>>, Option<String>);

fuzz_target!(|input: (bool, u16, &[u8])| {
    let (is_stranger, at, bytes) = input;
    let bounds = if is_stranger {
        CommandBounds::of_stranger(COMMAND_BYTES)
    } else {
        CommandBounds::of_client(COMMAND_BYTES)
    };
    let at = usize::from(at) % (bytes.len() + 1);
    let whole = read(bytes, &[bytes.len()], &bounds);
    let split = read(bytes, &[at, bytes.len()], &bounds);
    assert_eq!(whole, split);
});

/// Reads as a connection does, which has first so many bytes, and then so many.
fn read(bytes: &[u8], ends: &[usize], bounds: &CommandBounds) -> Read {
    let mut parser = Parser::default();
    let mut commands = Vec::new();
    let mut start = 0;
    for end in ends {
        loop {
            let text = &bytes[start..*end];
            match parser.parse(text, bounds) {
                Ok(Parsed::More) => break,
                Ok(Parsed::Command(used)) => {
                    assert!(used > 0 && used <= text.len());
                    let command = parser.command(text);
                    let words: Vec<_> = command.words().map(<[u8]>::to_vec).collect();
                    assert_eq!(words.len(), command.len());
                    assert!(words.iter().all(|word| word.len() <= COMMAND_BYTES));
                    commands.push(words);
                    start += used;
                }
                Err(fault) => {
                    assert!(fault.message().starts_with("Protocol error: "));
                    return (commands, Some(fault.message().to_owned()));
                }
            }
        }
    }
    // More is asked for only as long as a command may still fit.
    assert!(bytes.len() - start <= COMMAND_BYTES);
    (commands, None)
}
