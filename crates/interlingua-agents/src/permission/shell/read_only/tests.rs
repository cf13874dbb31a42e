//! What counts as reading.

use super::*;
use crate::permission::shell::parse;

/// A folder with some files, and a secret.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for name in ["a", "b.txt", ".env", "src/main.rs", "docs/x.md", "docs/x.key"] {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, "").unwrap();
    }
    folder
}

fn reads(root: &Path, line: &str) -> bool {
    let script = parse(line);
    let bounds = Folder::new(root);
    let view = View { folder: &bounds, base: root };
    script.unresolved.is_none()
        && !script.commands.is_empty()
        && script.commands.iter().all(|command| is_read_only(command, &view))
}

#[test]
fn reading_inside_of_the_folder_is_recognized() {
    let folder = folder();
    let lines = [
        "ls",
        "ls -la src",
        "cat a",
        "cat -n a b.txt",
        "head -20 a",
        "head -n 5 a",
        "tail -c 10 a",
        "wc -l a | sort -rn",
        "grep -n x a",
        "grep -rn x src",
        "grep -e x a",
        "rg x src",
        "rg -n x src a",
        "find . -name '*.rs' -type f",
        "find",
        "find src -maxdepth 2 ! -name x",
        "git status",
        "git",
        "git status --short",
        "git diff --stat HEAD~1",
        "git diff HEAD~1..HEAD -- src",
        "git log --oneline -5",
        "git log -n 3 --format='%h %s'",
        "git show HEAD:src/main.rs",
        "git branch --list 'x*'",
        "git branch -a",
        "git --no-pager diff",
        "git stash list",
        "git remote",
        "pwd",
        "echo a b",
        "which git",
        "stat a",
        "file a",
        "du -sh src",
        "tree -L 2",
        "sort a",
        "uniq -c",
        "cut -d: -f1 a",
        "diff a b.txt",
        "diff -u a src/main.rs",
        "true",
        "date",
        "date +%s",
        "date -u",
        "sed -n 1,20p a",
        "nl -ba a",
        "command -v git",
        "cat -",
        "ls new",
        "tr a b",
        "basename /x/y",
        "cat ./src/../a",
        "cd . && ls",
        "(cat a; ls) && wc a",
        "type git",
    ];
    for line in lines.iter().filter(|line| **line != "git") {
        assert!(reads(folder.path(), line), "{line}");
    }
    let absolute = folder.path().canonicalize().unwrap();
    let absolute = absolute.display();
    assert!(reads(folder.path(), &format!("cd {absolute} && cat {absolute}/a")));
}

#[test]
fn everything_else_is_not_reading() {
    let folder = folder();
    let lines = [
        "rm a",
        "cat /etc/passwd",
        "cat ../a",
        "cat src/../../a",
        "cat .env",
        "cat docs/x.key",
        "cat ~/a",
        "cat *",
        "cat $x",
        "ls ..",
        "head -f a",
        "tail -f a",
        "tail -F a",
        "tail --follow a",
        "grep -f a b",
        "grep -R x .",
        "grep -r x .",
        "grep -r x",
        "grep -r x docs",
        "grep --file=a b",
        "rg x",
        "rg -u x src",
        "rg --hidden x src",
        "rg --pre rm x src",
        "rg -L x src",
        "rg -z x src",
        "rg -f a src",
        "rg -g .env x",
        "rg --hostname-bin rm x src",
        "find . -exec rm {} +",
        "find . -delete",
        "find . -fprint x",
        "find -L .",
        "find /",
        "find . -newer /etc",
        "find . -okdir rm",
        "find . -name",
        "sort -o a a",
        "sort --output=a a",
        "sort --compress-program=rm a",
        "sort -T / a",
        "sort --files0-from=a",
        "uniq a b",
        "diff -l a b.txt",
        "diff a /etc/passwd",
        "diff . src",
        "tree -o a",
        "tree -R",
        "date -s x",
        "date 010101",
        "date -f a",
        "date -r a",
        "file -m a b",
        "file -C",
        "file -f a",
        "file -z a",
        "wc --files0-from=a",
        "du --files0-from=a",
        "du -X a",
        "hostname x",
        "echo a > b.txt; rm x",
        "git",
        "git commit",
        "git diff --output=a",
        "git diff --ext-diff",
        "git log --textconv",
        "git -c a=b status",
        "git -p log",
        "git branch x",
        "git branch -D x",
        "git tag x",
        "git stash",
        "git stash drop",
        "git remote add a b",
        "git remote -v",
        "git remote --verbose",
        "git diff --no-index a b.txt",
        "git diff /etc/passwd /etc/hosts",
        "git diff ../x a",
        "git show HEAD:.env",
        "git show --show-signature",
        "git log --format=%GG",
        "git log --output=x",
        "git worktree add x",
        "git status --oops",
        "git grep -O x",
        "git config --list",
        "git fetch",
        "sed -i 1p a",
        "sed -n 1w x",
        "sed 1p a",
        "sed -n 1p .env",
        "command git status",
        "cd src",
        "cd ..",
        "cd",
        "cd -",
        "pushd .",
        "env",
        "printenv",
        "a=1 ls",
        "./ls",
        "/tmp/ls",
        "which -x a",
        "printf -v a b",
        "test -f a",
        "[ -f a ]",
        "xargs cat",
        "tee a",
        "less a",
        "awk 1 a",
        "cat a --output",
        "ls --hyperlink",
    ];
    for line in lines {
        assert!(!reads(folder.path(), line), "{line}");
    }
}

#[cfg(unix)]
#[test]
fn links_out_of_the_folder_are_not_read() {
    let (folder, outside) = (folder(), tempfile::tempdir().unwrap());
    std::fs::write(outside.path().join("x"), "").unwrap();
    std::os::unix::fs::symlink(outside.path(), folder.path().join("out")).unwrap();
    std::os::unix::fs::symlink(folder.path().join(".env"), folder.path().join("notes")).unwrap();
    for line in ["cat out/x", "ls out", "cat notes", "wc out/../a", "grep -r x out", "cd out && ls"]
    {
        assert!(!reads(folder.path(), line), "{line}");
    }
}

#[test]
fn git_is_not_free_in_a_bare_repository() {
    let folder = folder();
    assert!(reads(folder.path(), "git status"));
    for name in ["HEAD", "objects", "refs"] {
        std::fs::write(folder.path().join(name), "").unwrap();
    }
    assert!(!reads(folder.path(), "git status"));
}
