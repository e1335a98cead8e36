//! `include`: the files that a configuration consists of.

use super::report::NginxReport;
use super::syntax::{self, NginxDirective};
use crate::SourceFile;

/// The most files, their most bytes in all, and the deepest nesting.
const FILES_MAX: usize = 1_000;
const BYTES_MAX: usize = 16 << 20;
const DEPTH_MAX: usize = 16;

/// Reads the files of a pattern, or returns why it cannot.
pub(super) type IncludeFiles<'i> = dyn FnMut(&str) -> Result<Vec<SourceFile>, String> + 'i;

/// Reads a file with everything that it includes.
pub(super) fn read(
    file: &SourceFile,
    include: &mut IncludeFiles<'_>,
    report: &mut NginxReport,
) -> Vec<NginxDirective> {
    add(file.clone(), include, report, 0)
}

fn add(
    file: SourceFile,
    include: &mut IncludeFiles<'_>,
    report: &mut NginxReport,
    depth: usize,
) -> Vec<NginxDirective> {
    let number = report.files.len();
    let found = syntax::read(&file, number, &mut report.wrong);
    report.files.push(file);
    expanded(found, include, report, depth)
}

/// Replaces every `include` by the contents of its files.
fn expanded(
    found: Vec<NginxDirective>,
    include: &mut IncludeFiles<'_>,
    report: &mut NginxReport,
    depth: usize,
) -> Vec<NginxDirective> {
    let mut all = Vec::new();
    for mut it in found {
        if it.name == "include" && it.words.len() == 1 && it.block.is_none() {
            all.extend(included(&it, include, report, depth + 1));
            continue;
        }
        let block = it.block.take();
        it.block = block.map(|block| expanded(block, include, report, depth));
        all.push(it);
    }
    all
}

fn included(
    it: &NginxDirective,
    include: &mut IncludeFiles<'_>,
    report: &mut NginxReport,
    depth: usize,
) -> Vec<NginxDirective> {
    if depth > DEPTH_MAX {
        let help = "a file may be including itself";
        report.error(it, "files include each other too deeply", help);
        return Vec::new();
    }
    let files = match include(it.first()) {
        Ok(files) => files,
        Err(why) => {
            let text = format!("`include {}` is skipped: {why}", it.first());
            report.warn(it, text);
            return Vec::new();
        }
    };
    let mut all = Vec::new();
    for file in files {
        let bytes: usize = report.files.iter().map(|file| file.text.len()).sum();
        if report.files.len() >= FILES_MAX || bytes + file.text.len() > BYTES_MAX {
            let help = "expected at most 1000 files and 16 MiB";
            report.error(it, "too many files are included", help);
            return all;
        }
        all.extend(add(file, include, report, depth));
    }
    all
}
