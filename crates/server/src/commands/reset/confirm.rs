//! Asks for confirmation before many buckets are reset.

use std::io::{self, BufRead, IsTerminal, Write};
use tidegate_control::failure::Failure;

/// Asks the user at the terminal. Fails unless they type `yes`.
pub(super) fn confirm(what: &str) -> Result<(), Failure> {
    if !io::stdin().is_terminal() {
        return Err(Failure::input(format!(
            "{what}, and there is no terminal to confirm it\n   help: try --dry-run first; add \
             --yes to skip the confirmation"
        )));
    }
    ask(what, io::stdin().lock(), io::stderr().lock())
}

fn ask(what: &str, mut input: impl BufRead, mut output: impl Write) -> Result<(), Failure> {
    let mut ask = || {
        write!(output, "{what}.\nType yes to continue: ")?;
        output.flush()?;
        let mut answer = String::new();
        input.read_line(&mut answer)?;
        Ok::<_, io::Error>(answer)
    };
    let answer = ask().map_err(|error| {
        Failure::runtime(format!(
            "cannot read the confirmation: \
        {error}"
        ))
    })?;
    if answer.trim() == "yes" {
        Ok(())
    } else {
        Err(Failure::runtime("nothing was deleted"))
    }
}

#[cfg(test)]
mod tests {
    use super::ask;

    #[test]
    fn only_yes_confirms() {
        for (answer, goes_on) in [
            ("yes\n", true),
            (" yes \n", true),
            ("y\n", false),
            ("YES\n", false),
            ("\n", false),
            ("", false),
            ("no\nyes\n", false),
        ] {
            let mut shown = Vec::new();
            let asked = ask("all of it", answer.as_bytes(), &mut shown);
            assert_eq!(asked.is_ok(), goes_on, "{answer:?}");
            assert_eq!(shown, b"all of it.\nType yes to continue: ");
        }
    }
}
