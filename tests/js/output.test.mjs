/** What a program printed, as plain text. */

import assert from "node:assert/strict";
import { test } from "node:test";

import { Output } from "../../static/js/jobs/output.js";

function shown(...pieces) {
  const output = new Output();
  for (const piece of pieces) output.push(piece);
  return output.text;
}

test("plain text stays, line ends of all kinds become one", () => {
  assert.equal(shown("a b\n", "żółć\r\nc\t1\n"), "a b\nżółć\nc\t1\n");
});

test("colours, titles, links and clipboard commands are dropped", () => {
  assert.equal(shown("\x1b[1;31mred\x1b[0m"), "red");
  assert.equal(shown("\x1b]0;title\x07x\x1b]8;;http://e\x1b\\link\x1b]8;;\x1b\\"), "xlink");
  assert.equal(shown("\x1b]52;c;aGk=\x07a\x1b(Bb\x1b=c\x1bM"), "abc");
  assert.equal(shown("a\x07\x08\x00\x9bb\x7f"), "ab");
});

test("a sequence may be cut anywhere", () => {
  const whole = "a\x1b[38;5;1mb\x1b]0;t\x1b\\c\r\nd\x1b[0m!";
  for (let cut = 0; cut <= whole.length; cut++) {
    assert.equal(shown(whole.slice(0, cut), whole.slice(cut)), "abc\nd!", `cut at ${cut}`);
  }
});

test("a progress bar shows its last state", () => {
  assert.equal(shown("  1%\r 50%", "\r100%\n", "next"), "100%\nnext");
  assert.equal(shown("a\r", "\nb"), "a\nb");
});

test("the text is bounded, the newest stays", () => {
  const output = new Output(10);
  for (let number = 0; number < 100; number++) output.push(`${number}\n`);
  assert.equal(output.text, "\n97\n98\n99\n");
});

test("an escape that never ends does not swallow the log", () => {
  const text = shown("\x1b]0;" + "x".repeat(5000), "\nhello\n");
  assert.match(text, /hello\n$/);
});
