//! What counts as reading.

use super::*;
use crate::permission::shell::parse;

/// A folder with some files, and a secret.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    write(
        folder.path(),
        &["a", "b.txt", ".env", "src/main.rs", "docs/x.md", "docs/x.key", ".git/HEAD"],
    );
    folder
}

fn write(root: &Path, names: &[&str]) {
    for name in names {
        let path = root.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, "").unwrap();
    }
}

fn reads(root: &Path, line: &str) -> bool {
    reads_in(root, root, line)
}

/// Whether a line only reads if it runs in `base`.
fn reads_in(root: &Path, base: &Path, line: &str) -> bool {
    let script = parse(line);
    let bounds = Folder::new(root);
    let view = View { folder: &bounds, base };
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
        "git log --format='%h%+G?'",
        "git log --format='% G?'",
        "git branch --list --format='%(signature:grade)'",
        "git branch --list --sort=signature",
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

/// git finds a repository above its folder, does not follow a link `HEAD` into `refs`, and reads the
/// configuration of a `commondir` elsewhere.
#[cfg(unix)]
#[test]
fn git_is_not_free_below_a_bare_repository_or_in_a_part_of_one() {
    let folder = folder();
    let root = folder.path();
    write(root, &["above/HEAD", "above/objects/x", "above/refs/x/y"]);
    write(root, &["common/HEAD", "common/commondir", "link/config", "src/deeper/x"]);
    std::os::unix::fs::symlink("refs/heads/none", root.join("link/HEAD")).unwrap();
    for base in ["above", "above/refs", "above/refs/x", "link", "common"] {
        assert!(!reads_in(root, &root.join(base), "git status"), "{base}");
    }
    // A folder `.git` that is no repository does not end git's search.
    std::fs::create_dir(root.join("above/refs/x/.git")).unwrap();
    assert!(!reads_in(root, &root.join("above/refs/x"), "git status"));
    assert!(reads_in(root, &root.join("src/deeper"), "git status"));
}

/// The configuration of a planted repository names a program that git runs.
#[cfg(unix)]
#[test]
fn no_free_git_command_runs_what_a_planted_repository_configures() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap();
    let marker = root.join("marker");
    write(&root, &["above/objects/x", "above/refs/x", "link/objects/x", "link/refs/x"]);
    write(&root, &["shared/objects/x", "shared/refs/x", "common/x"]);
    let head = "ref: refs/heads/none\n";
    std::fs::write(root.join("above/HEAD"), head).unwrap();
    std::fs::write(root.join("common/HEAD"), head).unwrap();
    std::fs::write(root.join("common/commondir"), "../shared\n").unwrap();
    std::os::unix::fs::symlink("refs/heads/none", root.join("link/HEAD")).unwrap();
    let (tree, touch) = (root.display(), marker.display());
    let core = format!("[core]\nbare = false\nfsmonitor = \"touch {touch}; false\"\n");
    let worktree = format!("[core]\nworktree = {tree}\n");
    for name in ["above", "link"] {
        let config = format!("{core}repositoryformatversion = 0\n{worktree}");
        std::fs::write(root.join(name).join("config"), config).unwrap();
    }
    // Of a `commondir`, git takes everything but the folder of the files, which it has a file of its own for.
    let extended = "repositoryformatversion = 1\n[extensions]\nworktreeConfig = true\n";
    std::fs::write(root.join("shared/config"), format!("{core}{extended}")).unwrap();
    std::fs::write(root.join("common/config.worktree"), &worktree).unwrap();
    for base in ["above", "above/refs", "link", "common"] {
        let mut git = std::process::Command::new("git");
        git.arg("status").current_dir(root.join(base)).env("HOME", &root);
        git.env("GIT_CONFIG_NOSYSTEM", "1").env_remove("GIT_DIR").env_remove("XDG_CONFIG_HOME");
        // Future releases of git may ignore bare repositories unless this is set.
        git.env("GIT_CONFIG_COUNT", "1").env("GIT_CONFIG_KEY_0", "safe.bareRepository");
        git.env("GIT_CONFIG_VALUE_0", "all");
        if git.output().is_err() {
            eprintln!("skipped: git is not installed");
            return;
        }
        assert!(std::fs::remove_file(&marker).is_ok(), "git did not run the program: {base}");
        assert!(!reads_in(&root, &root.join(base), "git status"), "{base}");
    }
}

/// `diff` reads what the links in two folders lead to.
#[cfg(unix)]
#[test]
fn folders_with_links_are_not_compared() {
    let folder = folder();
    let root = folder.path();
    write(root, &["left/x", "left/deeper/x", "right/deeper/x"]);
    let lines = ["diff -rN left right", "diff left right", "diff right left/x"];
    for line in lines {
        assert!(reads(root, line), "{line}");
    }
    std::os::unix::fs::symlink("/etc", root.join("right/deeper/k")).unwrap();
    for line in lines {
        assert!(!reads(root, line), "{line}");
    }
    // These do not follow the links that they find.
    for line in ["grep -r x right", "rg x right", "ls -R right"] {
        assert!(reads(root, line), "{line}");
    }
}

/// Two folders outside of its repository are compared by git like files.
#[test]
fn git_does_not_compare_folders_with_secrets() {
    let folder = folder();
    assert!(!reads(folder.path(), "git diff src docs"));
    // A folder and a file: the file of that name in the folder is compared.
    assert!(!reads(folder.path(), "git diff docs src/main.rs"));
    assert!(!reads(folder.path(), "git diff src/main.rs .git"));
    assert!(reads(folder.path(), "git diff src/main.rs docs/x.md"));
    assert!(reads(folder.path(), "git diff HEAD -- docs"));
}

/// `rg` skips hidden files, unless they have a type that is searched, or a rule includes them: `rg -t sh API .`
/// printed `.env`, which is a shell script to it.
#[test]
fn a_hidden_secret_is_found_by_rg() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), &["a", "src/main.rs"]);
    for line in ["rg API .", "rg -t sh API", "rg API src"] {
        assert!(reads(folder.path(), line), "{line}");
    }
    write(folder.path(), &[".env"]);
    for line in ["rg API .", "rg -t sh API", "rg --type=sh API ."] {
        assert!(!reads(folder.path(), line), "{line}");
    }
    assert!(reads(folder.path(), "rg API src"));
}

/// The addresses in `.git/config` may have passwords.
#[test]
fn searches_in_the_data_of_a_repository_are_not_reading() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), &["a", "src/main.rs", ".git/config", ".git/refs/x"]);
    for line in [
        "grep -rh url .git",
        "grep -r url .git/refs",
        "grep -r url .",
        "grep -r url",
        "grep -re .git",
        "grep -r --exclude-dir=x url .",
        "grep -r --exclude=.git url .",
        "grep -r --exclude-dir=.git url .git",
        "rg tok .git",
        "rg tok .git/refs",
        "rg -g '*' tok",
        "rg --glob=.git tok .",
        "diff -r . src",
    ] {
        assert!(!reads(folder.path(), line), "{line}");
    }
    let harmless = [
        "grep -r --exclude-dir=.git url .",
        "grep -r --exclude-dir .git url",
        "grep -r url src",
        "rg tok",
        "rg tok src",
        "rg -g '*.rs' -g '!.git' tok .",
    ];
    for line in harmless {
        assert!(reads(folder.path(), line), "{line}");
    }
    std::fs::write(folder.path().join(".ignore"), "!.git\n").unwrap();
    assert!(!reads(folder.path(), "rg tok") && reads(folder.path(), "rg tok src"));
}

/// A shell forgets a name before `..`, where the system follows a link.
#[cfg(unix)]
#[test]
fn a_change_of_the_folder_through_a_link_is_not_reading() {
    let folder = folder();
    let root = folder.path();
    write(root, &["deep/x"]);
    std::os::unix::fs::symlink(root.join("src"), root.join("deep/link")).unwrap();
    assert!(!reads(root, "cd deep/link/.. && ls"));
    assert!(reads(root, "cd ./ && ls"));
}
