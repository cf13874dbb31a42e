//! Paths: whether they are inside of a folder, and which of them are secrets.
//!
//! Links are followed as far as the path exists, since the text of a path does not tell where it
//! leads. A link that is made between the decision and the access is not seen, and neither are hard
//! links.

use std::ffi::OsStr;
use std::io::ErrorKind;
use std::path::{Component, Path, PathBuf};

use super::PermissionRequest;
use super::names::Names;

/// The number of entries that are looked at in search of a secret.
const MAX_ENTRIES: usize = 20_000;

/// A path, as it was written and as it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    /// The path as it was written.
    pub(crate) written: String,
    /// The absolute path, without links and `..`; absent if it cannot be determined.
    pub(crate) resolved: Option<PathBuf>,
    /// The part of `resolved` below the folder, if it is inside.
    pub(crate) below: Option<PathBuf>,
    /// The part of `resolved` below the folder or an additional one, if it is inside of any.
    inside: Option<PathBuf>,
    /// Whether it is a file that may be read wherever it is.
    is_readable_file: bool,
    /// The written path below the folder, whose names count as well as those of `below`.
    named: PathBuf,
}

/// The folder in which an agent works, and which bounds what it may read and change unasked.
#[derive(Debug, Clone)]
pub(crate) struct Folder {
    root: Option<PathBuf>,
    /// Folders that count as inside.
    additional: Vec<PathBuf>,
    /// Files that may be read wherever they are.
    files: Vec<PathBuf>,
}

impl Folder {
    #[cfg(test)]
    pub(crate) fn new(root: &Path) -> Self {
        Self { root: root.canonicalize().ok(), additional: Vec::new(), files: Vec::new() }
    }

    /// The folder of a request, with the additional ones.
    pub(crate) fn of(request: &PermissionRequest) -> Self {
        let resolved = |path: &PathBuf| path.canonicalize().ok();
        // Windows resolves paths to a form of their own, and links are followed there anyway.
        let folder = |path: &PathBuf| match request.folders_are_resolved && cfg!(unix) {
            true => Some(path.clone()),
            false => resolved(path),
        };
        Self {
            root: folder(&request.folder),
            additional: request.additional_folders.iter().filter_map(folder).collect(),
            files: request.readable_files.iter().filter_map(resolved).collect(),
        }
    }

    /// Finds a path, starting from `base` if it is relative.
    pub(crate) fn place(&self, base: &Path, written: &str) -> Place {
        let resolved = resolve(base, written);
        let below = match (&resolved, &self.root) {
            (Some(path), Some(root)) => path.strip_prefix(root).ok().map(Path::to_owned),
            _ => None,
        };
        let inside = below.clone().or_else(|| {
            let path = resolved.as_ref()?;
            self.additional.iter().find_map(|root| Some(path.strip_prefix(root).ok()?.to_owned()))
        });
        let roots = self.root.iter().chain(&self.additional);
        let named = roots.filter_map(|root| Path::new(written).strip_prefix(root).ok()).next();
        let named = named.unwrap_or(Path::new(written));
        let named = if named.is_absolute() { PathBuf::new() } else { named.to_owned() };
        let is_readable_file = resolved.as_ref().is_some_and(|path| self.files.contains(path));
        Place { written: written.to_owned(), resolved, below, inside, is_readable_file, named }
    }
}

impl Place {
    /// Whether the path is inside of the folder and not a secret, so that it may be read.
    pub(crate) fn is_readable(&self) -> bool {
        let inside = self.inside.as_ref();
        let is_plain = |inside: &PathBuf| !is_secret(&self.named) && !is_secret(inside);
        self.is_readable_file || inside.is_some_and(is_plain)
    }

    /// Whether the path may be read with everything below it that the reader reads.
    pub(crate) fn is_readable_by(&self, reader: Reader) -> bool {
        self.is_readable()
            && (self.is_readable_file || !self.is_in_repository_data())
            && self.resolved.as_ref().is_some_and(|path| !contains_secret(path, reader))
    }

    /// Whether the path is the folder `.git`, or below it. Its configuration is a secret, and other files
    /// repeat the addresses in it.
    pub(crate) fn is_in_repository_data(&self) -> bool {
        let paths = self.resolved.iter().chain([&self.named]);
        paths.flat_map(|path| path.iter()).any(is_git)
    }

    /// Whether the path is an ordinary file inside of the folder, so that an edit does not need to
    /// be asked for.
    pub(crate) fn is_editable(&self) -> bool {
        let inside = self.inside.as_ref();
        let protected = |inside| is_protected(&self.named) || is_protected(inside);
        let readable = self.is_readable() && !self.is_readable_file;
        readable && inside.is_some_and(|inside| !protected(inside))
    }

    /// The forms of the path that an allow rule is compared with: only where it really is.
    pub(crate) fn real_forms(&self) -> Vec<String> {
        let forms = [self.below.as_ref(), self.resolved.as_ref()];
        forms.into_iter().flatten().map(|path| path.display().to_string()).collect()
    }

    /// The forms of the path that a deny rule is compared with.
    pub(crate) fn all_forms(&self) -> Vec<String> {
        let mut forms = self.real_forms();
        forms.push(self.written.clone());
        forms.extend(self.written.strip_prefix("./").map(str::to_owned));
        forms
    }
}

/// Follows a path from left to right, as the system would. What does not exist is no link.
pub(crate) fn resolve(base: &Path, written: &str) -> Option<PathBuf> {
    // Some tools expand a tilde, and accept addresses.
    let expanded = written.starts_with('~') || written.starts_with("file:");
    if written.is_empty() || written.contains('\0') || expanded || written.contains("://") {
        return None;
    }
    let mut at = base.canonicalize().ok()?;
    for part in Path::new(written).components() {
        match part {
            Component::Prefix(_) | Component::RootDir => at.push(part),
            Component::CurDir => {}
            Component::ParentDir => {
                at.pop();
            }
            Component::Normal(name) => {
                at.push(name);
                match at.symlink_metadata() {
                    Ok(found) if found.is_symlink() => at = at.canonicalize().ok()?,
                    Ok(_) => {}
                    Err(error) if error.kind() == ErrorKind::NotFound => {}
                    Err(_) => return None,
                }
            }
        }
    }
    Some(at)
}

/// File names that are templates of secrets.
const TEMPLATES: Names = Names(
    "\
    .env.example .env.sample .env.template .env.dist .env.defaults .env-example .env_example \
    .env-sample .env_sample .env-template .env_template",
);

/// Names of files and folders that contain secrets.
const SECRET_NAMES: Names = Names(
    "\
    .aws .azure .bash_history .credentials.json .docker .dockercfg .env .envrc \
    .git-credentials .gnupg .htpasswd .kube .my.cnf .netrc .npmrc .pgpass .pypirc .secrets \
    .ssh .yarnrc.yml .zsh_history _netrc auth.json credentials credentials.json \
    credentials.toml gcloud oauth_creds.json",
);

const SECRET_STARTS: Names =
    Names(".env. .env- .env_ id_dsa id_ecdsa id_ed25519 id_rsa secrets. terraform.tfstate");

const SECRET_ENDS: Names = Names(".env .jks .kdbx .key .keystore .p12 .p8 .pem .pfx .ppk .tfvars");

/// Whether a path is, or is inside of, what usually is a secret.
pub(crate) fn is_secret(path: &Path) -> bool {
    // The addresses of remote repositories often contain passwords, also those that a log of git has.
    let last = path.file_name().unwrap_or_default();
    let is = |other: &str| last.eq_ignore_ascii_case(other);
    let mut in_git = path.iter().skip_while(|name| !is_git(name)).skip(1);
    let of_git = is("config") || is("config.worktree") || is("FETCH_HEAD");
    if in_git.next().is_some()
        && (of_git || path.iter().any(|name| name.eq_ignore_ascii_case("logs")))
    {
        return true;
    }
    path.iter().any(|name| {
        // A name that is not UTF-8 cannot be compared.
        let Some(name) = name.to_str().filter(|name| !may_be_another(name)) else { return true };
        // Editors mark the copies that they make.
        let name = name.to_ascii_lowercase();
        let name = name.trim_matches(['~', '#']);
        !TEMPLATES.contains(name)
            && (SECRET_NAMES.contains(name)
                || SECRET_STARTS.iter().any(|start| name.starts_with(start))
                || SECRET_ENDS.iter().any(|end| name.ends_with(end)))
    })
}

/// Whether the system may take a name for another one, so that it cannot be compared.
fn may_be_another(name: &str) -> bool {
    cfg!(windows) && is_odd_on_windows(name)
}

/// Windows ignores dots and blanks at the end of a name, and knows files by short names (`ENV~1`) and by
/// the names of their streams (`.env::$DATA`), too.
fn is_odd_on_windows(name: &str) -> bool {
    let is_short = |(at, _)| {
        name.get(at + 1..).is_some_and(|rest: &str| rest.starts_with(|c: char| c.is_ascii_digit()))
    };
    name.ends_with(['.', ' ']) || name.contains(':') || name.match_indices('~').any(is_short)
}

/// Names of files and folders that make agents, git, editors or shells run programs, or decide what a search
/// finds. A file `HEAD` can make a bare repository of its folder.
const PROTECTED_NAMES: Names = Names(
    "\
    .agents .bash_aliases .bash_login .bash_logout .bash_profile .bashrc .cargo .claude .claude.json .codex .config \
    .copilot .cursor .devcontainer .exrc .gdbinit .gemini .git .gitconfig .gitmodules .hg .husky .idea .ignore .inputrc \
    .jj .lldbinit .mcp.json .nvim.lua .nvimrc .opencode .profile .qwen .rgignore .ripgreprc .svn .tmux.conf .vim .vimrc \
    .vscode .zed .zlogin .zlogout .zprofile .zshenv .zshrc opencode.json opencode.jsonc",
);

/// Whether a change of this path would change what runs later, without a question.
fn is_protected(path: &Path) -> bool {
    let is_head = path.file_name().is_some_and(|name| name.eq_ignore_ascii_case("HEAD"));
    is_head
        || path.iter().any(|name| {
            let Some(name) = name.to_str().filter(|name| !may_be_another(name)) else {
                return true;
            };
            let name = name.to_ascii_lowercase();
            PROTECTED_NAMES.contains(&name) || name.ends_with(".code-workspace")
        })
}

/// What something reads that reads a whole folder. Hidden files are always among it: programs that skip
/// them do not if a rule for a type of files, or in a file of the folder, is about them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reader {
    /// All files.
    Everything,
    /// All files, and what links lead to. Any link counts as one to a secret.
    Links,
    /// All files but those below `.git`.
    OutsideGit,
    /// All files but those below `.git`, unless a file with ignore rules is about that folder.
    IgnoreRules,
}

/// The files whose rules exclude files from a search, or include them.
const RULE_FILES: [&str; 3] = [".gitignore", ".ignore", ".rgignore"];

/// Whether there is a secret below a folder, or whether that would take too long to find out.
fn contains_secret(path: &Path, reader: Reader) -> bool {
    let includes_git = |folder: &Path| {
        reader == Reader::IgnoreRules
            && RULE_FILES.iter().any(|name| rules_include_git(&folder.join(name)))
    };
    // Rules of the folders above apply, too.
    let mut reads_git = matches!(reader, Reader::Everything | Reader::Links)
        || path.ancestors().skip(1).any(includes_git);
    let mut skipped_git = false;
    let (mut folders, mut seen) = (vec![path.to_owned()], 0);
    while let Some(folder) = folders.pop() {
        let entries = match std::fs::read_dir(&folder) {
            Ok(entries) => entries,
            // A file, or nothing at all.
            Err(_) if folder == path && !folder.is_dir() => return false,
            Err(_) => return true,
        };
        reads_git |= includes_git(&folder);
        for entry in entries {
            let Ok(entry) = entry else { return true };
            let name = entry.file_name();
            seen += 1;
            if seen > MAX_ENTRIES {
                return true;
            }
            if is_secret(Path::new(&name)) {
                return true;
            }
            match entry.file_type() {
                // Its configuration is a secret.
                Ok(kind) if kind.is_dir() && is_git(&name) => skipped_git = true,
                Ok(kind) if kind.is_dir() => folders.push(entry.path()),
                Ok(kind) if reader == Reader::Links && kind.is_symlink() => return true,
                Ok(_) => {}
                Err(_) => return true,
            }
        }
    }
    skipped_git && reads_git
}

fn is_git(name: &OsStr) -> bool {
    name.eq_ignore_ascii_case(".git")
}

/// Whether a file with ignore rules has one that may include a folder `.git`, or cannot be read.
fn rules_include_git(file: &Path) -> bool {
    match std::fs::read(file) {
        Ok(rules) => {
            let rules = String::from_utf8_lossy(&rules);
            let rules = rules.trim_start_matches('\u{feff}');
            rules.lines().any(|rule| rule.strip_prefix('!').is_some_and(may_name_git))
        }
        Err(error) => !matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory),
    }
}

/// Whether a pattern for paths may match a folder `.git`: whether the last part of it does.
pub(crate) fn may_name_git(pattern: &str) -> bool {
    let pattern = pattern.trim_end().trim_end_matches('/');
    let (mut last, mut depth) = (0, 0_usize);
    for (at, byte) in pattern.bytes().enumerate() {
        match byte {
            b'{' => depth += 1,
            b'}' => depth = depth.saturating_sub(1),
            b'/' if depth == 0 => last = at + 1,
            // Which part is the last one depends on the alternative, or on who reads it.
            b'/' | b'\\' => return true,
            _ => {}
        }
    }
    let last = pattern.get(last..).unwrap_or(pattern);
    let glob = globset::GlobBuilder::new(last).case_insensitive(true).build();
    glob.map_or(true, |glob| glob.compile_matcher().is_match(".git"))
}

/// Whether git may find a bare repository in a folder, or above it, before an ordinary one. It would
/// trust its configuration.
///
/// Every repository has a `HEAD`, which may be a link to nothing; everything else may be elsewhere. A
/// folder `.git` without one is no repository, and git looks further.
pub(crate) fn may_find_bare_repository(folder: &Path) -> bool {
    let has_head = |folder: &Path| folder.join("HEAD").symlink_metadata().is_ok();
    let Ok(folder) = folder.canonicalize() else { return true };
    for folder in folder.ancestors() {
        if has_head(folder) {
            return true;
        }
        let git = folder.join(".git");
        if git.is_file() || (git.is_dir() && has_head(&git)) {
            return false;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_known_by_their_names() {
        let secrets = [
            ".env",
            ".ENV",
            ".env.local",
            "prod.env",
            "a/.env",
            "server.pem",
            "x.key",
            "id_rsa",
            "id_rsa.pub",
            "id_ed25519",
            ".npmrc",
            ".netrc",
            ".aws/config",
            ".ssh/known_hosts",
            ".git-credentials",
            ".pypirc",
            ".git/config",
            "a/.git/modules/b/Config",
            "a/.docker/config.json",
            "secrets.yml",
            ".env-prod",
            ".env_local",
            "AuthKey.p8",
            ".env~",
            "#.env#",
            ".git/logs/HEAD",
            ".git/FETCH_HEAD",
            ".qwen/oauth_creds.json",
            ".cargo/credentials.toml",
        ];
        for path in secrets {
            assert!(is_secret(Path::new(path)), "{path}");
        }
        let ordinary = [
            ".env.example",
            ".env-example",
            ".environment",
            "src/main.rs",
            "key.rs",
            "README.md",
            ".git",
            ".git/HEAD",
            "config",
        ];
        for path in ordinary {
            assert!(!is_secret(Path::new(path)), "{path}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn links_are_followed() {
        use std::os::unix::fs::symlink;
        let (inside, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let root = inside.path();
        std::fs::create_dir(root.join("sub")).unwrap();
        std::fs::write(root.join("a"), "").unwrap();
        std::fs::write(root.join(".env"), "").unwrap();
        symlink(outside.path(), root.join("out")).unwrap();
        symlink(root.join("sub"), root.join("in")).unwrap();
        symlink(root.join(".env"), root.join("notes.txt")).unwrap();
        symlink(outside.path().join("missing"), root.join("dangling")).unwrap();
        let folder = Folder::new(root);
        let readable = |path: &str| folder.place(root, path).is_readable();
        for path in ["a", "./a", "sub/../a", "in/x", "new", "new/deeper", "in/../a", "."] {
            assert!(readable(path), "{path}");
        }
        let absolute = root.join("a").display().to_string();
        assert!(readable(&absolute));
        for path in [
            "..",
            "../x",
            "/etc/passwd",
            "out/x",
            "out/../a",
            "notes.txt",
            "dangling",
            "~/x",
            "file:///etc/passwd",
            "",
        ] {
            assert!(!readable(path), "{path}");
        }
        assert!(!readable("sub/../../x") && !readable("new/../../x"));
    }

    #[test]
    fn settings_that_run_programs_are_not_edited_unasked() {
        let root = tempfile::tempdir().unwrap();
        let folder = Folder::new(root.path());
        let editable = |path: &str| folder.place(root.path(), path).is_editable();
        assert!(editable("src/main.rs") && editable(".github/x.yml") && editable("head/x.rs"));
        for path in [
            ".git/config",
            ".claude/settings.json",
            ".vscode/tasks.json",
            ".cargo/config.toml",
            ".zed/tasks.json",
            ".zlogin",
            ".bash_login",
            ".env",
            ".vimrc",
            ".config/git/config",
            "a.code-workspace",
            "HEAD",
            "x/.ignore",
            "../x",
        ] {
            assert!(!editable(path), "{path}");
        }
    }

    #[test]
    fn windows_knows_a_file_by_several_names() {
        let odd =
            [".env::$DATA", "server.pem.", ".npmrc ", ".git.", "ENV~1", "CREDEN~12.JSO", "a:"];
        for name in odd {
            assert!(is_odd_on_windows(name), "{name}");
            let path = Path::new(name).join("x");
            assert_eq!(is_protected(&path), cfg!(windows), "{name}");
            assert!(!cfg!(windows) || is_secret(&path), "{name}");
        }
        for name in [".env", "main.rs~", "a~b", "a b", "..a"] {
            assert!(!is_odd_on_windows(name), "{name}");
        }
    }

    #[test]
    fn a_folder_with_a_secret_is_not_read_recursively() {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(root.path().join("a/b")).unwrap();
        std::fs::write(root.path().join("a/b/c"), "").unwrap();
        let folder = Folder::new(root.path());
        let readable = |path: &str| {
            let place = folder.place(root.path(), path);
            let by = |reader| place.is_readable_by(reader);
            let readers = [Reader::Everything, Reader::OutsideGit, Reader::IgnoreRules];
            assert!(readers.iter().all(|reader| by(*reader) == by(Reader::Links)), "{path}");
            by(Reader::Everything)
        };
        assert!(readable(".") && readable("a/b/c"));
        std::fs::write(root.path().join("a/.env"), "").unwrap();
        assert!(!readable(".") && readable("a/b"));
        std::fs::write(root.path().join("a/b/x.pem"), "").unwrap();
        assert!(!readable(".") && !readable("a"));
    }

    /// The addresses in `.git/config` may have passwords. `grep -rh url .git` was free.
    #[test]
    fn the_configuration_of_a_repository_is_not_read_recursively() {
        let root = tempfile::tempdir().unwrap();
        let below = |path: &str| root.path().join(path);
        std::fs::create_dir_all(below("sub/.git/refs")).unwrap();
        std::fs::write(below("sub/.git/config"), "").unwrap();
        let folder = Folder::new(root.path());
        let by = |reader, path: &str| folder.place(root.path(), path).is_readable_by(reader);
        for path in ["sub/.git", "sub/.GIT", "sub/.git/refs"] {
            for reader in [Reader::Everything, Reader::OutsideGit, Reader::IgnoreRules] {
                assert!(!by(reader, path), "{reader:?} {path}");
            }
        }
        for path in [".", "sub"] {
            assert!(!by(Reader::Everything, path) && !by(Reader::Links, path), "{path}");
            assert!(by(Reader::OutsideGit, path) && by(Reader::IgnoreRules, path), "{path}");
        }
        std::fs::write(below(".ignore"), "target\n!*.rs\n!build/\n.git\n").unwrap();
        assert!(by(Reader::IgnoreRules, "sub"));
        for rule in ["\u{feff}!.git", "!.git", "!.git/", "!**/.g?t", "!*", "!{.git,a}"] {
            let before = if rule.starts_with('!') { "a\n" } else { "" };
            std::fs::write(below(".ignore"), format!("{before}{rule}\n")).unwrap();
            assert!(!by(Reader::IgnoreRules, "sub"), "{rule}");
            assert!(by(Reader::OutsideGit, "sub"), "{rule}");
        }
    }

    #[test]
    fn a_pattern_may_name_the_data_of_a_repository() {
        for pattern in
            ["*", "**", "**/*", ".git", ".GIT/", "a/.g*", "[.]git", "{a/*.rs,*}", "[", "\\.git"]
        {
            assert!(may_name_git(pattern), "{pattern}");
        }
        for pattern in ["*.rs", "**/*.{ts,tsx}", "src/**/a?", ".gitignore", ".git/config"] {
            assert!(!may_name_git(pattern), "{pattern}");
        }
    }
}
