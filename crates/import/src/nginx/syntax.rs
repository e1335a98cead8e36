//! The syntax of nginx: directives, each with words, and with a block or a semicolon at the end.

use crate::SourceFile;
use crate::document::{ImportErrors, ImportedFile};
use std::iter::Peekable;
use std::str::Chars;
use tidegate_policy::text::{ConfigFault, TextSpan};

/// The deepest nesting of blocks.
const DEPTH_MAX: usize = 64;

/// A directive.
#[derive(Clone, Debug)]
pub(super) struct NginxDirective {
    /// The index of its file.
    pub(super) file: usize,
    pub(super) line: usize,
    column: usize,
    pub(super) name: String,
    pub(super) words: Vec<String>,
    pub(super) block: Option<Vec<NginxDirective>>,
}

impl NginxDirective {
    /// Returns the position of its name.
    pub(super) fn place(&self) -> TextSpan {
        TextSpan::at(self.line, self.column, self.name.chars().count().max(1))
    }

    /// Returns the directives in its block.
    pub(super) fn children(&self) -> &[NginxDirective] {
        self.block.as_deref().unwrap_or_default()
    }

    /// Returns its first word.
    pub(super) fn first(&self) -> &str {
        self.words.first().map_or("", String::as_str)
    }

    /// Returns it as written, without its block and with single blanks.
    pub(super) fn written(&self) -> String {
        let mut text = self.name.clone();
        for word in &self.words {
            text.push(' ');
            text.push_str(word);
        }
        text
    }
}

/// A word, or a mark.
#[derive(Debug, PartialEq, Eq)]
enum NginxToken {
    Word(String),
    Open,
    Close,
    Semicolon,
    End,
}

/// A file that is being read.
struct NginxReader<'a> {
    text: Peekable<Chars<'a>>,
    file: usize,
    line: usize,
    column: usize,
    /// The position of the last token.
    at: (usize, usize),
    fault: Option<(TextSpan, ConfigFault)>,
}

/// Reads a file. `number` is its index. Stops at the first error, because everything after a missing
/// semicolon or brace would be read wrongly.
pub(super) fn read(
    file: &SourceFile,
    number: usize,
    wrong: &mut ImportErrors,
) -> Vec<NginxDirective> {
    let mut reader = NginxReader {
        text: file.text.trim_start_matches('\u{feff}').chars().peekable(),
        file: number,
        line: 1,
        column: 1,
        at: (1, 1),
        fault: None,
    };
    let found = reader.directives(0);
    if let Some((place, fault)) = reader.fault {
        ImportedFile::add_error_at(file, place, fault, wrong);
    }
    found
}

impl NginxReader<'_> {
    /// Reads directives up to the end of the file or of a block.
    fn directives(&mut self, depth: usize) -> Vec<NginxDirective> {
        let mut found = Vec::new();
        loop {
            let token = self.token();
            let (line, column) = self.at;
            let name = match token {
                NginxToken::Word(name) => name,
                NginxToken::Semicolon => continue,
                NginxToken::Close if depth > 0 => return found,
                NginxToken::End if depth == 0 => return found,
                NginxToken::End => {
                    self.fail("the file ends inside a block", "write the missing `}`");
                    return found;
                }
                NginxToken::Close => {
                    self.fail("unexpected `}`", "remove it, or write the missing `{`");
                    return found;
                }
                NginxToken::Open => {
                    self.fail("unexpected `{`", "write the name of a directive before it");
                    return found;
                }
            };
            let Some((words, block)) = self.rest(&name, depth) else {
                return found;
            };
            found.push(NginxDirective {
                file: self.file,
                line,
                column,
                name,
                words,
                block,
            });
            if self.fault.is_some() {
                return found;
            }
        }
    }

    /// Reads the words of a directive, and its block.
    fn rest(
        &mut self,
        name: &str,
        depth: usize,
    ) -> Option<(Vec<String>, Option<Vec<NginxDirective>>)> {
        let mut words = Vec::new();
        let place = TextSpan::at(self.at.0, self.at.1, name.chars().count().max(1));
        loop {
            match self.token() {
                NginxToken::Word(word) => words.push(word),
                NginxToken::Semicolon => return Some((words, None)),
                NginxToken::Open if name.ends_with("_by_lua_block") => {
                    self.skip_block();
                    return Some((words, Some(Vec::new())));
                }
                NginxToken::Open if depth >= DEPTH_MAX => {
                    self.fail("blocks are nested too deeply", "expected at most 64 levels");
                    return None;
                }
                NginxToken::Open => {
                    let block = self.directives(depth + 1);
                    return Some((words, Some(block)));
                }
                NginxToken::Close | NginxToken::End => {
                    let message = format!("{} is not terminated", ConfigFault::quote(name));
                    let fault = ConfigFault::new(message).help("write the missing `;`");
                    self.fault.get_or_insert((place, fault));
                    return None;
                }
            }
        }
    }

    fn fail(&mut self, message: &str, help: &str) {
        let place = TextSpan::at(self.at.0, self.at.1, 1);
        let fault = ConfigFault::new(message).help(help);
        self.fault.get_or_insert((place, fault));
    }

    fn next(&mut self) -> Option<char> {
        let letter = self.text.next()?;
        if letter == '\n' {
            self.line += 1;
            self.column = 1;
        } else {
            self.column += 1;
        }
        Some(letter)
    }

    fn token(&mut self) -> NginxToken {
        loop {
            match self.text.peek() {
                None => return NginxToken::End,
                Some(letter) if letter.is_whitespace() => {
                    self.next();
                }
                Some('#') => while self.next().is_some_and(|letter| letter != '\n') {},
                Some(_) => break,
            }
        }
        self.at = (self.line, self.column);
        let mark = match self.text.peek() {
            Some('{') => NginxToken::Open,
            Some('}') => NginxToken::Close,
            Some(';') => NginxToken::Semicolon,
            Some('"' | '\'') => return self.quoted(),
            _ => return self.word(),
        };
        self.next();
        mark
    }

    /// Reads a text in quotes.
    fn quoted(&mut self) -> NginxToken {
        let quote = self.next();
        let mut word = String::new();
        while let Some(letter) = self.next() {
            if Some(letter) == quote {
                return NginxToken::Word(word);
            }
            if letter == '\\' && self.text.peek().copied() == quote {
                word.extend(self.next());
            } else {
                word.push(letter);
            }
        }
        self.fail("a quoted text does not end", "write the missing quote");
        NginxToken::End
    }

    /// Reads a word without quotes. `${name}` is part of it.
    fn word(&mut self) -> NginxToken {
        let mut word = String::new();
        while let Some(&letter) = self.text.peek() {
            let is_variable = letter == '{' && word.ends_with('$');
            if letter.is_whitespace() || letter == ';' || (letter == '{' && !is_variable) {
                break;
            }
            word.extend(self.next());
            if is_variable {
                while let Some(letter) = self.next() {
                    word.push(letter);
                    if letter == '}' {
                        break;
                    }
                }
            } else if letter == '\\' {
                word.extend(self.next());
            }
        }
        NginxToken::Word(word)
    }

    /// Skips a block of Lua, in which braces are balanced.
    fn skip_block(&mut self) {
        let mut depth = 1_usize;
        while depth > 0 {
            match self.next() {
                Some('{') => depth += 1,
                Some('}') => depth -= 1,
                Some(_) => {}
                None => {
                    self.fail("the file ends inside a block", "write the missing `}`");
                    return;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::read;
    use crate::SourceFile;
    use crate::document::ImportErrors;

    #[test]
    fn words_blocks_and_comments_are_read() {
        let file = SourceFile {
            name: "a".to_owned(),
            text: "a b 'c d' \"e\\\"f\"; # x;\nlocation ~ ^/\\w{2}$ {\n}\n".to_owned(),
        };
        let mut wrong = ImportErrors::default();
        let found = read(&file, 0, &mut wrong);
        assert_eq!(found[0].words, ["b", "c d", "e\"f"]);
        assert_eq!(found[1].line, 2);
        assert!(
            wrong.finish("a").is_err(),
            "a brace needs quotes, as in nginx"
        );
    }

    #[test]
    fn variables_in_braces_are_part_of_a_word() {
        let file = SourceFile {
            name: "a".to_owned(),
            text: "zone ${binary_remote_addr}x;content_by_lua_block { if x then {} end }"
                .to_owned(),
        };
        let mut wrong = ImportErrors::default();
        let found = read(&file, 0, &mut wrong);
        assert_eq!(found[0].words, ["${binary_remote_addr}x"]);
        assert_eq!(found[1].name, "content_by_lua_block");
        assert!(wrong.finish("a").is_ok());
    }
}
