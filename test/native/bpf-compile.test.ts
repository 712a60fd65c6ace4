// The filter compiler as a process: native/engine/filter/bpf_compile_main.cc.
import assert from 'node:assert/strict'
import { execFileSync, spawnSync } from 'node:child_process'
import { test } from 'node:test'
import { bpfCompilerPath } from '../../native/addon.ts'
import { compileFilter, compilerInput } from '../support/processes/compile-filter.ts'
import { LIMIT_SIGNALS, measureProcessorTime } from '../support/processes/processor-time.ts'

const INSTRUCTION_BYTES = 8

test('compiles an expression, and an empty one to a program that accepts everything', () => {
  const { status, program } = compileFilter('tcp port 443')
  assert.equal(status, 0)
  assert.ok(program.byteLength > 10 * INSTRUCTION_BYTES)
  const empty = compileFilter('')
  assert.equal(empty.status, 0)
  assert.equal(empty.program.byteLength, INSTRUCTION_BYTES)
  assert.equal(empty.program.readUInt16LE(0), 6, 'return a constant')
  assert.ok(empty.program.readUInt32LE(4) > 0)
})

test('uses the link type of the capture', () => {
  const ethernet = compileFilter('ip', 1)
  const cooked = compileFilter('ip', 113)
  assert.equal(cooked.status, 0)
  assert.notDeepEqual(ethernet.program, cooked.program)
})

/** tcpdump's program for an expression, in our format. */
function tcpdumpsProgram(expression: string, ...options: string[]): Buffer {
  const printed = execFileSync('tcpdump', ['-y', 'EN10MB', ...options, '-ddd', expression], {
    encoding: 'utf8',
  })
  const instructions = printed.trim().split('\n').slice(1)
  return Buffer.concat(
    instructions.map((instruction) => {
      const [code, jumpTrue, jumpFalse, k] = instruction.split(' ').map(Number)
      const bytes = Buffer.alloc(INSTRUCTION_BYTES)
      bytes.writeUInt16LE(code ?? 0, 0)
      bytes.writeUInt8(jumpTrue ?? 0, 2)
      bytes.writeUInt8(jumpFalse ?? 0, 3)
      bytes.writeUInt32LE(k ?? 0, 4)
      return bytes
    }),
  )
}

test("gives tcpdump's program, and without the optimizer where that loses what it calculates with", () => {
  const calculation = 'len - ip[2:2] > ether[12]'
  assert.deepEqual(compileFilter(calculation).program, tcpdumpsProgram(calculation))
  assert.notDeepEqual(compileFilter(calculation).program, tcpdumpsProgram(calculation, '-O'))
  // The optimizer's program loads the length for the last calculation from M[3], which nothing stores.
  const lost =
    '(not ((len + ip[2] = ether[len - 1] or ether[21:4] < 7) and (host 10.0.0.4 and len % ip[9] <= ether[12])) or ' +
    '((len + ip[0] > ether[12] and icmp6) or (len * ip[15] <= ether[12] and len % ip[12] > ether[len - 1])))'
  assert.deepEqual(compileFilter(lost).program, tcpdumpsProgram(lost, '-O'))
})

test("answers a wrong expression with libpcap's message in one line", () => {
  for (const expression of ['tcp prot 443', 'host 1.2.3.4.5', 'tcp[', 'decnet host x', 'vlan 5000']) {
    const { status, program, message } = compileFilter(expression)
    assert.equal(status, 1, expression)
    assert.equal(program.byteLength, 0)
    assert.match(message, /^[^\n]+$/, expression)
  }
})

test('knows names of services and protocols but never of hosts or networks', () => {
  for (const expression of ['tcp port https', 'portrange http-https', 'ip proto \\ospf', 'udp port ntp']) {
    assert.deepEqual(compileFilter(expression).program, tcpdumpsProgram(expression), expression)
  }
  assert.equal(compileFilter('tcp port no-such-service').status, 1)
  assert.equal(compileFilter('ip6 host ::1 or host 10.0.0.1 or net 10.0.0.0/8').status, 0)
  for (const expression of ['host localhost', 'host example.com', 'net loopback', 'ether host router']) {
    const { status, message } = compileFilter(expression)
    assert.equal(status, 1, expression)
    assert.match(message, /names of hosts and networks are not looked up/)
  }
})

test('a filter bomb ends within its limits', () => {
  const hosts = Array.from({ length: 1000 }, (_, i) => `host 10.${i >> 8}.${i & 255}.1`)
  const bomb = hosts
    .join(' or ')
    .slice(0, 16_300)
    .replace(/ or [^r]*$/, '')
  const { status, signal, cpuMs } = measureProcessorTime(bpfCompilerPath, compilerInput(bomb))
  // Stopped by its processor time, or, on a busy machine, by real time.
  assert.ok(status === 1 || LIMIT_SIGNALS.includes(String(signal)), `${status} ${signal}`)
  assert.ok(cpuMs < 2_500, `${cpuMs} ms`)
})

test('refuses input that is too short or too long', () => {
  assert.match(compileFilter(`tcp ${' '.repeat(16 * 1024)}`).message, /longer than 16384 bytes/)
  const short = spawnSync(bpfCompilerPath, { input: 'abc' })
  assert.equal(short.status, 1)
  assert.match(short.stderr.toString(), /link type and snaplen are missing/)
  assert.match(compileFilter('tcp\0udp').message, /zero byte/)
})
