//! Commands about the connection itself: login, protocol version, and client information.

use super::host::{RespHost, shortened};
use super::parse::{RespCommand, strict_number};
use super::reply::{Replies, RespVersion};
use super::session;
use std::fmt::Write;
use tidegate::Store;

const WRONG_PASSWORD: &str = "WRONGPASS invalid username-password pair or user is disabled.";

const NO_PASSWORD: &str = "ERR AUTH <password> called without any password configured for the \
    default user. Are you sure your configuration is correct?";

const NOT_LOGGED_IN: &str = "NOAUTH HELLO must be called with the client already authenticated, \
    otherwise the HELLO <proto> AUTH <user> <pass> option can be used to authenticate the client \
    and select the RESP protocol version at the same time";

const BAD_NAME: &str = "ERR Client names cannot contain spaces, newlines or special characters.";

const SYNTAX: &str = "ERR syntax error";

/// The only user.
const USER: &[u8] = b"default";

pub(super) fn ping(command: RespCommand<'_>, replies: &mut Replies) {
    match command.len() {
        1 => replies.simple("PONG"),
        2 => replies.bulk(command.word(1)),
        _ => replies.error("ERR wrong number of arguments for 'ping' command"),
    }
}

pub(super) fn select(command: RespCommand<'_>, replies: &mut Replies) {
    match strict_number(command.word(1)) {
        Some(0) => replies.simple("OK"),
        Some(index) if i32::try_from(index).is_ok() => {
            replies.error("ERR DB index is out of range");
        }
        Some(_) => replies
            .error("ERR value is out of range, value must between -2147483648 and 2147483647"),
        None => replies.error("ERR value is not an integer or out of range"),
    }
}

impl<S: Store> RespHost<S> {
    /// Executes `HELLO [protover [AUTH username password] [SETNAME name]]`. An invalid command changes
    /// nothing, except that a successful login stays.
    pub(super) fn hello(&mut self, command: RespCommand<'_>) {
        match self.greet(command) {
            Ok(()) => self.introduce(),
            Err(message) => self.replies.error(message),
        }
    }

    fn greet(&mut self, command: RespCommand<'_>) -> Result<(), String> {
        let protocol = match command.len() {
            1 => None,
            _ => match strict_number(command.word(1)) {
                Some(2) => Some(RespVersion::Resp2),
                Some(3) => Some(RespVersion::Resp3),
                Some(_) => return Err("NOPROTO unsupported protocol version".to_owned()),
                None => {
                    let message = "ERR Protocol version is not an integer or out of range";
                    return Err(message.to_owned());
                }
            },
        };
        let (mut login, mut name) = (None, None);
        let mut words = command.words().skip(2);
        while let Some(option) = words.next() {
            if option.eq_ignore_ascii_case(b"auth") && words.len() >= 2 {
                login = words.next().zip(words.next());
            } else if option.eq_ignore_ascii_case(b"setname") && words.len() >= 1 {
                let given = words.next().unwrap_or_default();
                name = Some(session::name(given).ok_or(BAD_NAME)?);
            } else {
                let option = String::from_utf8_lossy(shortened(option, 128));
                return Err(format!("ERR Syntax error in HELLO option '{option}'"));
            }
        }
        if let Some((user, password)) = login {
            self.log_in(user, password)?;
        }
        if !self.session.is_known {
            self.frontend.threshold.metrics.count_bad(401);
            return Err(NOT_LOGGED_IN.to_owned());
        }
        if let Some(name) = name {
            self.session.name = name.into();
        }
        if let Some(protocol) = protocol {
            self.replies.protocol = protocol;
        }
        Ok(())
    }

    fn introduce(&mut self) {
        let replies = &mut self.replies;
        replies.map(7);
        replies.bulk("server");
        replies.bulk("tidegate");
        replies.bulk("version");
        replies.bulk(env!("CARGO_PKG_VERSION"));
        replies.bulk("proto");
        replies.integer(replies.protocol.number());
        replies.bulk("id");
        replies.natural(self.session.id);
        replies.bulk("mode");
        replies.bulk("standalone");
        replies.bulk("role");
        replies.bulk("master");
        replies.bulk("modules");
        replies.array(0);
    }

    /// Executes `AUTH [username] password`.
    pub(super) fn auth(&mut self, command: RespCommand<'_>) {
        let done = match command.len() {
            2 if self.frontend.token.is_none() => Err(NO_PASSWORD),
            2 => self.log_in(USER, command.word(1)),
            3 => self.log_in(command.word(1), command.word(2)),
            _ => Err(SYNTAX),
        };
        match done {
            Ok(()) => self.replies.simple("OK"),
            Err(message) => self.replies.error(message),
        }
    }

    /// Logs in. Without a configured password, any is accepted. A failed attempt does not end an earlier
    /// login.
    fn log_in(&mut self, user: &[u8], password: &[u8]) -> Result<(), &'static str> {
        let token = self.frontend.token.as_ref();
        // The password is compared even for an unknown user, so that the time does not reveal which users
        // exist.
        let is_right = token.is_none_or(|token| token.is(password));
        if is_right && user == USER {
            self.session.is_known = true;
            return Ok(());
        }
        self.frontend.threshold.metrics.count_bad(401);
        Err(WRONG_PASSWORD)
    }

    pub(super) fn reset(&mut self) {
        self.session.transaction = None;
        self.session.name = Box::default();
        self.session.is_known = self.frontend.token.is_none();
        self.replies.protocol = RespVersion::Resp2;
        self.replies.simple("RESET");
    }

    /// Executes `CLIENT` with a known subcommand and a valid number of arguments.
    pub(super) fn client(&mut self, command: RespCommand<'_>) {
        let subcommand = command.word(1).to_ascii_lowercase();
        match subcommand.as_slice() {
            b"id" => self.replies.natural(self.session.id),
            b"getname" if self.session.name.is_empty() => self.replies.null(),
            b"getname" => self.replies.bulk(self.session.name.as_bytes()),
            b"info" => {
                let info = self.client_info();
                self.replies.verbatim(&info);
            }
            b"setname" => match session::name(command.word(2)) {
                Some(name) => {
                    self.session.name = name.into();
                    self.replies.simple("OK");
                }
                None => self.replies.error(BAD_NAME),
            },
            b"setinfo" => self.set_info(command),
            b"no-evict" | b"no-touch" => {
                let is_known = [&b"on"[..], b"off"]
                    .iter()
                    .any(|it| command.word(2).eq_ignore_ascii_case(it));
                if is_known {
                    self.replies.simple("OK");
                } else {
                    self.replies.error(SYNTAX);
                }
            }
            _ => super::introspect::help("client", &mut self.replies),
        }
    }

    fn set_info(&mut self, command: RespCommand<'_>) {
        let option = command.word(2).to_ascii_lowercase();
        let place = match option.as_slice() {
            b"lib-name" => &mut self.session.library,
            b"lib-ver" => &mut self.session.library_version,
            _ => {
                let option = String::from_utf8_lossy(shortened(command.word(2), 128));
                let message = format!("ERR Unrecognized option '{option}'");
                return self.replies.error(message);
            }
        };
        match session::name(command.word(3)) {
            Some(name) => {
                *place = name.into();
                self.replies.simple("OK");
            }
            None => {
                let option = String::from_utf8_lossy(&option);
                self.replies.error(format!(
                    "ERR {option} cannot contain spaces, newlines or special characters."
                ));
            }
        }
    }

    fn client_info(&self) -> String {
        let session = &self.session;
        let mut info = String::new();
        // Writing to a string cannot fail.
        writeln!(
            info,
            "id={} addr={} name={} db=0 user=default resp={} lib-name={} lib-ver={}",
            session.id,
            session.peer,
            session.name,
            self.replies.protocol.number(),
            session.library,
            session.library_version
        )
        .ok();
        info
    }
}
