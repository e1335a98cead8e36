//! `tidegate completions` and `tidegate man`.

use crate::kit::folder::Folder;
use crate::kit::process::{run, tidegate};
use std::process::Command;
use tidegate_testkit::redis::output;

#[tokio::test]
async fn bash_completes_commands_and_flags() {
    let folder = Folder::make();
    let ended = run(tidegate(&["completions", "bash"])).await;
    assert_eq!(ended.status.code(), Some(0), "{}", ended.stderr);
    let script = folder.write("tidegate.bash", ended.stdout);
    for (words, expected) in [
        ("tidegate va", "validate"),
        ("tidegate validate --ex", "--explain"),
        ("tidegate import ng", "nginx"),
        ("tidegate completions z", "zsh"),
    ] {
        let count = words.split(' ').count() - 1;
        let complete = format!(
            "source {script}; COMP_WORDS=({words}); COMP_CWORD={count}; \
             _tidegate tidegate \"${{COMP_WORDS[-1]}}\" \"${{COMP_WORDS[-2]}}\"; \
             echo \"${{COMPREPLY[@]}}\""
        );
        let output = output(Command::new("bash").args(["-c", &complete]));
        let found = String::from_utf8(output.stdout).unwrap();
        assert_eq!(found.trim(), expected, "{words}");
    }
}

#[tokio::test]
async fn every_shell_has_a_script_and_an_unknown_one_is_an_error() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let ended = run(tidegate(&["completions", shell])).await;
        assert_eq!(ended.status.code(), Some(0), "{}", ended.stderr);
        for command in ["serve", "healthcheck", "summary-only"] {
            assert!(ended.stdout.contains(command), "{shell}: {command}");
        }
    }
    let ended = run(tidegate(&["completions", "csh"])).await;
    assert_eq!(ended.status.code(), Some(2));
}

#[tokio::test]
async fn the_manual_has_the_main_page_and_one_for_each_command() {
    let folder = Folder::make();
    let dir = folder.write("any", "").replace("/any", "");
    let ended = run(tidegate(&["man", &dir])).await;
    assert_eq!(ended.status.code(), Some(0), "{}", ended.stderr);
    let main = std::fs::read_to_string(format!("{dir}/tidegate.1")).unwrap();
    let printed = run(tidegate(&["man"])).await;
    assert_eq!(printed.stdout, main);
    assert!(main.contains("tidegate\\-validate(1)"), "{main}");
    let page = std::fs::read_to_string(format!("{dir}/tidegate-simulate.1")).unwrap();
    assert!(page.contains("\\-\\-summary\\-only"), "{page}");

    let ended = run(tidegate(&["man", "/nowhere"])).await;
    assert_eq!(ended.status.code(), Some(1));
    assert!(
        ended.stderr.contains("cannot write /nowhere/"),
        "{}",
        ended.stderr
    );
}
