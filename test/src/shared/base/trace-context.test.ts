import assert from 'node:assert/strict'
import { test } from 'node:test'
import { childOf, continueTrace, traceHeaders } from '../../../../src/shared/base/trace-context.ts'

const TRACE = '4bf92f3577b34da6a3ce929d0e0e4736'
const SPAN = '00f067aa0ba902b7'
const PARENT = `00-${TRACE}-${SPAN}-01`

test('a trace continues with our own span, and is passed on with that', () => {
  const trace = continueTrace({ traceparent: PARENT, tracestate: 'vendor=1' })
  assert.deepEqual([trace.traceId, trace.parentId, trace.isSampled], [TRACE, SPAN, true])
  assert.match(trace.spanId, /^[0-9a-f]{16}$/)
  assert.notEqual(trace.spanId, SPAN)
  assert.deepEqual(traceHeaders(trace), {
    traceparent: `00-${TRACE}-${trace.spanId}-01`,
    tracestate: 'vendor=1',
  })
  const child = childOf(trace)
  assert.deepEqual([child.traceId, child.parentId, child.state], [TRACE, trace.spanId, 'vendor=1'])
  assert.notEqual(child.spanId, trace.spanId)
})

test('only the known flag is passed on', () => {
  const flagsOf = (flags: string) =>
    traceHeaders(continueTrace({ traceparent: `00-${TRACE}-${SPAN}-${flags}` })).traceparent?.slice(-2)
  assert.deepEqual(['00', '01', 'ff', 'fe', '02'].map(flagsOf), ['00', '01', '01', '00', '00'])
})

test('versions to come are read as far as they are known, and passed on as ours', () => {
  for (const traceparent of [`cc-${TRACE}-${SPAN}-01`, `cc-${TRACE}-${SPAN}-01-what-the-future-brings`]) {
    const trace = continueTrace({ traceparent })
    assert.equal(trace.traceId, TRACE)
    assert.match(traceHeaders(trace).traceparent ?? '', /^00-4bf9.*-01$/)
  }
})

for (const [why, traceparent] of [
  ['there is none', undefined],
  ['it is empty', ''],
  ['its version is ff', `ff-${TRACE}-${SPAN}-01`],
  ['it is longer than version 00 is', `${PARENT}-extra`],
  ['it ends with a dash', `${PARENT}-`],
  ['it is followed by something', `${PARENT}.`],
  ['a version to come goes on without a dash', `cc-${TRACE}-${SPAN}-01.what`],
  ['it has capital letters', PARENT.toUpperCase()],
  ['the trace id is 0', `00-${'0'.repeat(32)}-${SPAN}-01`],
  ['the parent id is 0', `00-${TRACE}-${'0'.repeat(16)}-01`],
  ['the trace id is short', `00-${TRACE.slice(1)}-${SPAN}-01`],
  ['the trace id is no hexadecimal number', `00-${TRACE.slice(1)}g-${SPAN}-01`],
  ['the parent id is long', `00-${TRACE}-${SPAN}0-01`],
  ['the flags are missing', `00-${TRACE}-${SPAN}`],
  ['the flags are no hexadecimal number', `00-${TRACE}-${SPAN}-0x`],
  ['spaces are around it', ` ${PARENT} `],
  ['the header comes twice', `${PARENT}, ${PARENT}`],
] as const) {
  test(`a new trace begins when ${why}, and the state of the old one is forgotten`, () => {
    const trace = continueTrace({ traceparent, tracestate: 'vendor=1' })
    assert.notEqual(trace.traceId, TRACE)
    assert.match(trace.traceId, /^[0-9a-f]{32}$/)
    assert.deepEqual([trace.parentId, trace.isSampled, trace.state], [undefined, false, ''])
  })
}

/** The part of a tracestate that is passed on. */
function stateOf(tracestate: string): string {
  const trace = continueTrace({ traceparent: PARENT, tracestate })
  assert.equal(trace.traceId, TRACE, 'a wrong state does not end the trace')
  return trace.state
}

test('a valid state is passed on in its order, without its spaces', () => {
  assert.equal(stateOf('foo=1 , bar=2'), 'foo=1,bar=2')
  assert.equal(stateOf('foo=1,\t,,bar= 2'), 'foo=1,bar= 2', 'empty members are allowed')
  assert.equal(stateOf('fw529a3039@dt=FfAFIAAAAAA,0t@v=x'), 'fw529a3039@dt=FfAFIAAAAAA,0t@v=x')
  assert.equal(stateOf(`a${'_'.repeat(100)}=${'v'.repeat(20)}`), `a${'_'.repeat(100)}=${'v'.repeat(20)}`)
})

for (const [why, tracestate] of [
  ['a key twice', 'foo=1,bar=2,foo=3'],
  ['a key with a capital letter', 'Foo=1'],
  ['a key of one system that begins with a digit', '0foo=1'],
  ['a key that is too long', `${'a'.repeat(257)}=1`],
  ['a tenant that is too long', `${'a'.repeat(242)}@v=1`],
  ['a system that is too long', `t@${'v'.repeat(15)}=1`],
  ['a system that is missing', 't@=1'],
  ['two systems', 'a@b@c=1'],
  ['no value', 'foo'],
  ['an empty value', 'foo='],
  ['an equals sign in its value', 'foo=1=2'],
  ['a letter that is not ASCII', 'foo=\u00e4'],
  ['a control character', 'foo=a\x01b'],
  ['a space before the equals sign', 'foo =1'],
  ['33 members', Array.from({ length: 33 }, (_, at) => `k${at}=1`).join(',')],
  ['a value that is too long', `foo=${'v'.repeat(257)}`],
] as const) {
  test(`a state with ${why} is left out as a whole`, () => assert.equal(stateOf(tracestate), ''))
}

test('a state that is too long loses whole members, the long ones first, then the last', () => {
  const long = `long=${'v'.repeat(200)}`
  const short = Array.from({ length: 31 }, (_, at) => `k${at}=${'v'.repeat(14)}`)
  assert.equal(stateOf([long, ...short.slice(0, 20)].join(',')), short.slice(0, 20).join(','))
  const cut = stateOf(short.join(','))
  assert.ok(cut.length <= 512 && cut.length > 480, String(cut.length))
  assert.ok(short.join(',').startsWith(`${cut},`))
})

test('a state of 512 characters is passed on, and one beyond 4,096 is dropped before it is parsed', () => {
  const member = (at: number, length: number) => `k${at}=${'v'.repeat(length - `k${at}=`.length)}`
  const whole = [...Array.from({ length: 3 }, (_, at) => member(at, 127)), member(3, 128)].join(',')
  assert.equal(whole.length, 512)
  assert.equal(stateOf(whole), whole)
  assert.equal(stateOf(`${whole},${' '.repeat(4_096 - 513)}`), whole)
  assert.equal(stateOf(`${whole},${' '.repeat(4_097 - 513)}`), '')
})
