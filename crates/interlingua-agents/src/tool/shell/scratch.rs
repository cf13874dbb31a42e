//! The private folder of a session: the outputs of its commands, and their temporary files.
//!
//! Where temporary files are below a folder that commands may write to, a command can put a link in
//! the place of this folder. So our own files are created and removed relative to a descriptor.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::Error;
use crate::tool::place::Directory;
use crate::tool::sandbox::refer;

/// The private folder of a session; it is removed at its end.
#[derive(Debug)]
pub(in crate::tool) struct Scratch {
    /// The shell for which the folder is.
    pub(super) shell: PathBuf,
    _folder: tempfile::TempDir,
    outputs: PathBuf,
    output_folder: Arc<Directory>,
    pub(super) temporary: PathBuf,
}

/// A file for an output, with its path for the model.
#[derive(Debug)]
pub(in crate::tool) struct ScratchFile {
    pub(super) path: PathBuf,
    pub(super) file: File,
    folder: Arc<Directory>,
}

impl Scratch {
    /// A folder for the shell of this system; `None` if it has none.
    pub(in crate::tool) fn for_shell() -> Result<Option<Self>, Error> {
        let Some(shell) = super::program() else { return Ok(None) };
        let folder = tempfile::Builder::new().prefix("interlingua-").tempdir();
        let folder =
            folder.map_err(|problem| Error::NotPrepared { path: std::env::temp_dir(), problem })?;
        // The sandbox and the guard see the folder without links.
        let path = folder.path().canonicalize().unwrap_or_else(|_| folder.path().to_owned());
        let (outputs, temporary) = (path.join("outputs"), path.join("tmp"));
        let prepared = Directory::open(&path).and_then(|directory| {
            directory.create_folders(Path::new("tmp"))?;
            directory.create_folders(Path::new("outputs"))
        });
        let output_folder = prepared.map_err(|problem| Error::NotPrepared { path, problem })?;
        let output_folder = Arc::new(output_folder);
        Ok(Some(Self { shell, _folder: folder, outputs, output_folder, temporary }))
    }

    /// The folder with the outputs of commands.
    pub(in crate::tool) fn outputs(&self) -> &Path {
        &self.outputs
    }

    /// The folder for the temporary files of commands, open.
    pub(super) fn open_temporary(&self) -> io::Result<(PathBuf, File)> {
        Ok((self.temporary.clone(), refer(&self.temporary)?))
    }

    /// Creates a file for an output.
    pub(super) fn create_output(&self, name: &str) -> io::Result<ScratchFile> {
        let file = self.output_folder.create(Path::new(name), 0o600)?;
        Ok(ScratchFile { path: self.outputs.join(name), file, folder: self.output_folder.clone() })
    }
}

impl ScratchFile {
    /// Removes the file.
    pub(super) fn remove(self) {
        let Self { path, file, folder } = self;
        drop(file);
        if let Some(name) = path.file_name() {
            // What stays is removed with the folder.
            let _ = folder.remove(Path::new(name));
        }
    }
}
