//! The tools of an agent that is a model API: files, searches, commands, pages.
//!
//! The loop that talks to the model offers the [`Definition`]s of a [`Toolbox`], asks for permission,
//! and runs each permitted [`Call`]. Whatever goes wrong is an [`Output`] that the model can read.
//! Names, inputs and result texts are those of Claude's tools, since consumers know them. The
//! user's guide is `docs/tools.md`. Nothing here knows a protocol or decides about a permission.
//!
//! | module | what it knows |
//! |---|---|
//! | `definition` | the tools: names, descriptions, schemas |
//! | `schema` | whether an input fits its schema |
//! | `place` | which paths may be opened, and how, so that a link made later has no effect |
//! | `seen` | the files that were read, and whether they changed since |
//! | `read`, `write`, `edit`, `list`, `glob`, `grep` | the tools for files |
//! | `replace`, `change` | exact replacements; diffs and the lines that are shown of a change |
//! | `walk` | the bounded walk through folders that `glob` and `grep` share |
//! | `shell` | commands: in the foreground, in the background, and their output |
//! | `sandbox`, `writable` | the sandbox of commands, on Linux; what they may write to |
//! | `todo`, `fetch` | the list of tasks; pages of the web |

mod change;
mod definition;
mod edit;
mod fetch;
mod glob;
mod grep;
mod list;
mod place;
mod read;
mod replace;
mod sandbox;
mod schema;
mod seen;
pub(crate) mod settings;
mod shell;
mod todo;
mod walk;
mod writable;
mod write;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use interlingua::event::{FileChangeKind, ToolStatus};
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::Error;

pub use definition::Definition;
pub(crate) use definition::is_known;
use place::Roots;
pub(crate) use read::{document, image, media_type};
pub use sandbox::{Sandbox, sandbox};
use seen::Seen;
pub use settings::Settings;
use shell::{Scratch, Shell};

/// The fields of inputs that contain the path.
pub(crate) const PATH_FIELDS: [&str; 2] = ["file_path", "path"];

/// A call of a tool by the model.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Call {
    /// The id of the call.
    pub id: String,
    /// The name of the tool.
    pub name: String,
    /// The input of the tool.
    pub input: Value,
    /// Where the paths of the call led, as [`Toolbox::places`] returned them *before* the call was
    /// judged. A path that leads to any other place is refused, so that a link that is made in
    /// between has no effect. If absent, the call was not judged, and every path has to be inside of
    /// the folders.
    pub places: Option<Vec<PathBuf>>,
}

/// The result of a call.
#[derive(Debug, Clone, PartialEq)]
pub struct Output {
    /// `Completed`, `Failed` or `TimedOut`.
    pub status: ToolStatus,
    /// What the model receives.
    pub content: Vec<Content>,
    /// The exit code of a command.
    pub exit_code: Option<i64>,
    /// Facts about the result, for programs.
    pub structured: Option<Value>,
    /// The files that were changed.
    pub changes: Vec<Change>,
}

/// A piece of a result, or of a prompt.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Content {
    /// Text.
    Text(String),
    /// An image.
    Image {
        /// Its media type, for example `image/png`.
        media_type: String,
        /// The bytes in base64.
        data: String,
    },
    /// A document.
    Document {
        /// Its media type, for example `application/pdf`.
        media_type: String,
        /// The bytes in base64.
        data: String,
        /// The name of the file.
        name: String,
    },
}

/// A changed file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// The absolute path.
    pub path: PathBuf,
    /// The previous path of a renamed file.
    pub old_path: Option<PathBuf>,
    /// The kind of change.
    pub kind: FileChangeKind,
    /// The change as a unified diff.
    pub diff: String,
}

/// Why a call failed, for the model.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Failure(String);

impl From<String> for Failure {
    fn from(reason: String) -> Self {
        Self(reason)
    }
}

/// The result of a tool.
type Outcome = Result<Output, Failure>;

impl Output {
    fn completed(text: String) -> Self {
        Self::of(ToolStatus::Completed, vec![Content::Text(text)])
    }

    fn failed(text: String) -> Self {
        Self::of(ToolStatus::Failed, vec![Content::Text(text)])
    }

    fn of(status: ToolStatus, content: Vec<Content>) -> Self {
        Self { status, content, exit_code: None, structured: None, changes: Vec::new() }
    }

    /// The texts of the result, joined by line ends.
    pub fn text(&self) -> String {
        let texts = self.content.iter().filter_map(|content| match content {
            Content::Text(text) => Some(&**text),
            Content::Image { .. } | Content::Document { .. } => None,
        });
        texts.collect::<Vec<_>>().join("\n")
    }
}

/// The tools of a session.
///
/// The loop may run several calls that only read at the same time, and runs all others one after
/// another.
#[derive(Debug)]
pub struct Toolbox {
    shared: Arc<Shared>,
    definitions: Vec<Definition>,
    shell: Option<Shell>,
}

/// What file tools need, in whatever thread they run.
#[derive(Debug)]
struct Shared {
    settings: Settings,
    roots: Roots,
    seen: Seen,
}

impl Toolbox {
    /// Prepares the tools. The folders have to exist, and the names of tools have to be known.
    pub fn new(settings: Settings) -> Result<Self, Error> {
        let mut named = settings.tools.iter().flatten();
        let is_known = |name: &str| definition::is_known(name) || settings::is_of_server(name);
        if let Some(name) = named.find(|name| !is_known(name)) {
            return Err(Error::InvalidName { what: "tool", name: name.clone() });
        }
        let scratch = Scratch::for_shell()?;
        let outputs = scratch.as_ref().map(Scratch::outputs);
        let roots = Roots::new(&settings.folder, &settings.additional_folders, outputs)?;
        let shell = scratch.map(|scratch| Shell::new(scratch, &settings, &roots)).transpose()?;
        let definitions = definition::all(&settings, shell.is_some());
        let shared = Shared { settings, roots, seen: Seen::default() };
        Ok(Self { shared: Arc::new(shared), definitions, shell })
    }

    /// What the model may use, always in the same order.
    pub fn definitions(&self) -> &[Definition] {
        &self.definitions
    }

    /// The definition of a tool.
    pub fn definition(&self, name: &str) -> Option<&Definition> {
        self.definitions.iter().find(|definition| definition.name == name)
    }

    /// What is enforced when tools run, and what is not, in sentences for the user.
    pub fn enforcement(&self) -> Vec<String> {
        let mut sentences = vec![place::enforcement()];
        if let Some(shell) = self.shell.as_ref().filter(|_| self.definition("Bash").is_some()) {
            sentences.extend(shell.enforcement(&self.shared.settings));
        }
        sentences
    }

    /// The working folder, without links.
    pub fn folder(&self) -> &Path {
        self.shared.roots.folder()
    }

    /// The folders besides the working folder that the tools may read, for the
    /// [permission request](crate::permission::PermissionRequest::additional_folders) of a call:
    /// the additional ones, and the one with the outputs of commands.
    pub fn additional_folders(&self) -> Vec<PathBuf> {
        self.shared.roots.additional()
    }

    /// Where the paths of a call lead, as of now: nowhere, inside or outside of the folders. The
    /// loop asks before the call is judged, and puts the places into [`Call::places`]. `None` for a
    /// tool that has no path.
    pub fn places(&self, call: &Call) -> Option<Vec<PathBuf>> {
        let folder = match &*call.name {
            "Read" | "Write" | "Edit" | "MultiEdit" | "LS" => None,
            "Glob" | "Grep" => Some("."),
            _ => return None,
        };
        let path = PATH_FIELDS.iter().find_map(|name| call.input.get(*name)?.as_str()).or(folder);
        Some(path.and_then(|path| self.shared.roots.resolve(path)).into_iter().collect())
    }

    /// Runs a call that was permitted; `progress` receives the output of a command while it runs.
    ///
    /// If the future is dropped, the call is cancelled and its processes end. A change of a file
    /// that has begun is completed, or has no effect at all.
    pub async fn run(&self, call: &Call, progress: &mut (dyn FnMut(&str) + Send)) -> Output {
        let ran = self.try_run(call, progress).await;
        ran.unwrap_or_else(|Failure(reason)| Output::failed(reason))
    }

    async fn try_run(&self, call: &Call, progress: &mut (dyn FnMut(&str) + Send)) -> Outcome {
        let Some(definition) = self.definition(&call.name) else {
            return Err(self.unknown(&call.name));
        };
        definition.check(&call.input)?;
        match definition.name {
            "Read" => self.blocking(call, read::run).await,
            "Write" => self.blocking(call, write::run).await,
            "Edit" => self.blocking(call, edit::run).await,
            "MultiEdit" => self.blocking(call, edit::run_several).await,
            "Glob" => self.blocking(call, glob::run).await,
            "Grep" => self.blocking(call, grep::run).await,
            "LS" => self.blocking(call, list::run).await,
            "TodoWrite" => todo::run(&parsed(&call.input)?),
            "WebFetch" => fetch::run(&self.shared.settings, &parsed(&call.input)?).await,
            name => match &self.shell {
                Some(shell) => shell.run(name, call, &self.shared.settings, progress).await,
                None => Err(self.unknown(name)),
            },
        }
    }

    /// Runs a tool that works with files in a thread where it may block.
    async fn blocking<Input: DeserializeOwned + Send + 'static>(
        &self,
        call: &Call,
        tool: fn(&Scope<'_>, Input) -> Outcome,
    ) -> Outcome {
        let input = parsed(&call.input)?;
        let (shared, places) = (self.shared.clone(), call.places.clone());
        let cancelled = Arc::new(AtomicBool::new(false));
        let _cancels = CancelOnDrop(cancelled.clone());
        let task = tokio::task::spawn_blocking(move || {
            let places = places.as_deref();
            tool(&Scope { shared: &shared, places, cancelled: &cancelled }, input)
        });
        task.await.unwrap_or_else(|problem| Err(Failure(format!("the tool broke: {problem}"))))
    }

    fn unknown(&self, name: &str) -> Failure {
        let names: Vec<_> = self.definitions.iter().map(|definition| definition.name).collect();
        Failure(format!("there is no tool `{name}`; the tools are {}", names.join(", ")))
    }

    /// A text as the model gets it: of a long one, it gets both ends, and a file has all of it.
    pub(crate) fn shortened(&self, text: String) -> String {
        shell::shortened(text, || Some(self.shell.as_ref()?.result_file()))
    }

    /// Ends all background commands, and waits until the processes of cancelled calls have ended.
    pub async fn close(&self) {
        if let Some(shell) = &self.shell {
            shell.close().await;
        }
    }
}

/// What a call of a file tool may use.
struct Scope<'s> {
    shared: &'s Shared,
    /// Where its paths led when it was judged.
    places: Option<&'s [PathBuf]>,
    /// Set if no one waits for the result any more.
    cancelled: &'s Arc<AtomicBool>,
}

impl Scope<'_> {
    /// Finds the place of a path.
    fn place(&self, written: &str) -> Result<place::Place, Failure> {
        self.shared.roots.find(written, self.places)
    }

    /// A path as it is shown: relative to the working folder if it is inside.
    fn shown(&self, path: &Path) -> String {
        self.shared.roots.shown(path)
    }
}

struct CancelOnDrop(Arc<AtomicBool>);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// The input of a tool in its own type; it fits its schema already.
fn parsed<Input: DeserializeOwned>(input: &Value) -> Result<Input, Failure> {
    Input::deserialize(input).map_err(|problem| Failure(format!("the input is invalid: {problem}")))
}
