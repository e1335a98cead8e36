//! Any bytes as commands of the Redis protocol, split anywhere: nothing panics, bounds hold, and
//! splits change nothing.
//!
//! How: the same bytes are read whole and in two pieces, by a client with and without a login. Both
//! ways give the same commands, and the same end.

use tidegate_frontends::resp::parse::{CommandBounds, ParseProgress, Parser};

const COMMAND_BYTES: usize = 64 << 10;

/// Commands as lists of words, and the error at the end.
type ParsedCommands = (Vec<Vec<Vec<u8>>>, Option<String>);

fuzz_target!(|input: (bool, u16, &[u8])| {
    let (is_stranger, at, bytes) = input;
    let bounds = if is_stranger {
        CommandBounds::unauthenticated(COMMAND_BYTES)
    } else {
        CommandBounds::of_client(COMMAND_BYTES)
    };
    let at = usize::from(at) % (bytes.len() + 1);
    let whole = read(bytes, &[bytes.len()], &bounds);
    let split = read(bytes, &[at, bytes.len()], &bounds);
    assert_eq!(whole, split);
});

/// Reads like a connection that receives the bytes in these pieces.
fn read(bytes: &[u8], ends: &[usize], bounds: &CommandBounds) -> ParsedCommands {
    let mut parser = Parser::default();
    let mut commands = Vec::new();
    let mut start = 0;
    for end in ends {
        loop {
            let text = &bytes[start..*end];
            match parser.parse(text, bounds) {
                Ok(ParseProgress::More) => break,
                Ok(ParseProgress::Command(used)) => {
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
    // The reader waits for more only while a command may still fit.
    assert!(bytes.len() - start <= COMMAND_BYTES);
    (commands, None)
}
