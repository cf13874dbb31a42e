//! Reading and listing.

use interlingua_agents::tool::Content;
use serde_json::json;

use super::Bench;

#[tokio::test]
async fn text_is_read_with_line_numbers() {
    let bench = Bench::new();
    let path = bench.write("src/a.rs", "eins\nzwei\ndrei\n");
    let expected = "     1→eins\n     2→zwei\n     3→drei";
    assert_eq!(bench.done("Read", json!({"file_path": "src/a.rs"})).await, expected);
    assert_eq!(bench.done("Read", json!({"file_path": path})).await, expected);
    assert_eq!(bench.done("Read", json!({"file_path": "./src/../src/a.rs"})).await, expected);
    let part = bench.done("Read", json!({"file_path": path, "offset": 2, "limit": 1})).await;
    assert_eq!(part, "     2→zwei\n\n(the file has more lines: read on with offset 3)");
    let missing = bench.failed("Read", json!({"file_path": "src/b.rs"})).await;
    assert!(missing.ends_with("b.rs does not exist"), "{missing}");
    let folder = bench.failed("Read", json!({"file_path": "src"})).await;
    assert!(folder.contains("a folder"), "{folder}");
}

#[tokio::test]
async fn what_models_see_is_returned_as_it_is() {
    let bench = Bench::new();
    let png = b"\x89PNG\r\n\x1a\nrest";
    bench.write("a.png", png);
    bench.write("b.pdf", b"%PDF-1.7 rest");
    bench.write("c.bin", b"MZ\0\0");
    let output = bench.run("Read", json!({"file_path": "a.png"})).await;
    let image = Content::Image { media_type: "image/png".into(), data: "iVBORw0KGgpyZXN0".into() };
    assert_eq!(output.content[1], image);
    let output = bench.run("Read", json!({"file_path": "b.pdf"})).await;
    let document = Content::Document {
        media_type: "application/pdf".into(),
        data: "JVBERi0xLjcgcmVzdA==".into(),
        name: "b.pdf".into(),
    };
    assert_eq!(output.content[1], document);
    let text = bench.failed("Read", json!({"file_path": "c.bin"})).await;
    assert_eq!(text, "c.bin is a binary file of 4 bytes, which cannot be shown");
}

#[tokio::test]
async fn a_notebook_is_read_as_cells() {
    let bench = Bench::new();
    let notebook = json!({"cells": [{"cell_type": "code", "source": ["1+1"], "outputs": []}]});
    bench.write("n.ipynb", notebook.to_string());
    let text = bench.done("Read", json!({"file_path": "n.ipynb"})).await;
    assert_eq!(text, "# Cell 0: code\n1+1\n\n");
    let raw = bench.done("Read", json!({"file_path": "n.ipynb", "offset": 1})).await;
    assert!(raw.starts_with("     1→{"), "{raw}");
}

/// 10 GB, of which nothing is stored.
#[tokio::test]
#[cfg(unix)]
async fn a_huge_file_costs_only_what_is_shown() {
    let bench = Bench::new();
    let path = bench.write("huge", "line\n".repeat(50_000));
    std::fs::File::options().write(true).open(&path).unwrap().set_len(10 << 30).unwrap();
    let text = bench.done("Read", json!({"file_path": "huge", "limit": 2})).await;
    assert!(text.starts_with("     1→line\n     2→line\n"), "{text}");
    // Nothing but zeros follows: the search for the end of the line is bounded.
    let text = bench.done("Read", json!({"file_path": "huge", "offset": 50_000})).await;
    assert!(text.contains("bytes of the file were read"), "{text}");
    bench.write("zeros", "");
    let zeros = std::fs::File::options().write(true).open(bench.root().join("zeros")).unwrap();
    zeros.set_len(10 << 30).unwrap();
    let text = bench.failed("Read", json!({"file_path": "zeros"})).await;
    assert!(text.contains("binary file of 10737418240 bytes"), "{text}");
    // Neither is it searched to its end, nor edited.
    let text = bench.done("Grep", json!({"pattern": "line", "output_mode": "count"})).await;
    assert!(text.contains("huge"), "{text}");
    let edit = json!({"file_path": "huge", "old_string": "line", "new_string": "x"});
    let text = bench.failed("Edit", edit).await;
    assert!(text.contains("too many"), "{text}");
}

#[tokio::test]
async fn a_folder_is_listed() {
    let bench = Bench::new();
    for path in ["b.txt", "a/x", ".hidden", "c.log"] {
        bench.write(path, "");
    }
    let separator = std::path::MAIN_SEPARATOR;
    let text = bench.done("LS", json!({"path": ".", "ignore": ["*.log"]})).await;
    assert_eq!(text, format!(".hidden\na{separator}\nb.txt"));
    let text = bench.failed("LS", json!({"path": "b.txt"})).await;
    assert!(text.contains("b.txt is not a folder"), "{text}");
}

#[tokio::test]
async fn a_folder_with_very_many_entries_is_bounded() {
    let bench = Bench::new();
    for number in 0..100_000 {
        std::fs::File::create(bench.root().join(format!("f{number}"))).unwrap();
    }
    let text = bench.done("LS", json!({"path": "."})).await;
    assert!(text.lines().count() <= 1001 && text.contains("more than 20000 entries"));
    let text = bench.done("Glob", json!({"pattern": "*"})).await;
    assert!(text.lines().count() <= 103 && text.contains("99900 more files match"), "{text}");
    let text = bench.done("Grep", json!({"pattern": "^$"})).await;
    assert!(text.lines().count() <= 253, "{text}");
}
