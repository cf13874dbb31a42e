import assert from "node:assert/strict";
import { test } from "node:test";
import { take } from "../take.mjs";

const text = (input, limit) => String(take(Buffer.from(input), limit));

test("a line ends at its line feed", () => assert.equal(text("ab\ncd", 9), "ab"));
test("an empty input has an empty line", () => assert.equal(text("", 9), ""));
test("a long line is cut at the limit", () => assert.equal(text("abcdef", 3), "abc"));
