// What an input that takes control of a compile helper could do, according to the kernel's information about the
// installed helpers. Which system calls they may still use is tested in
// test/native/engine/filter/allowed_system_calls_test.cc.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { test } from 'node:test'
import { bpfCompilerPath, regexCompilerPath } from '../../native/addon.ts'
import { eventually } from '../support/eventually.ts'

for (const [name, path] of Object.entries({ bpf: bpfCompilerPath, regex: regexCompilerPath })) {
  test(`the ${name} compiler is confined before it reads`, async () => {
    const child = spawn(path, { stdio: ['pipe', 'ignore', 'ignore'] })
    const ended = once(child, 'exit')
    const status = (): Promise<string> => readFile(`/proc/${child.pid}/status`, 'utf8')
    // It waits for its input. 2 = a filter of system calls.
    await eventually(async () => /^Seccomp:\t2$/m.test(await status()), {
      message: 'system calls are filtered',
    })
    assert.match(await status(), /^NoNewPrivs:\t1$/m)
    child.stdin.end()
    assert.deepEqual(await ended, [1, null])
  })
}
