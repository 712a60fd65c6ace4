import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { test } from 'node:test'
import { communityId } from '../../../../src/console/inside/community-id.ts'

test('a Community ID is that of the specification, in both directions', () => {
  const ports = { source: 34_855, destination: 80 }
  const flow = { source: '128.232.110.120', destination: '66.35.250.204', protocol: 6, ports }
  assert.equal(communityId(flow), '1:LQU9qZlK+B5F3KDmev6m5PMibrg=')
  assert.equal(
    communityId({
      ...flow,
      source: flow.destination,
      destination: flow.source,
      ports: { source: 80, destination: 34_855 },
    }),
    '1:LQU9qZlK+B5F3KDmev6m5PMibrg=',
  )
})

test('IPv6 addresses are hashed whole, and equal addresses ordered by port', () => {
  const address = Buffer.from('20010db8000000000000000000000001', 'hex')
  const hashed = Buffer.concat([Buffer.from([0, 0]), address, address, Buffer.from([17, 0, 0, 53, 0x80, 0])])
  const expected = `1:${createHash('sha1').update(hashed).digest('base64')}`
  const ports = { source: 0x8000, destination: 53 }
  assert.equal(
    communityId({ source: '2001:db8::1', destination: '2001:db8::1', protocol: 17, ports }),
    expected,
  )
})

test('a flow without ports has none', () => {
  assert.equal(
    communityId({ source: '10.0.0.1', destination: '10.0.0.2', protocol: 1, ports: undefined }),
    undefined,
  )
})
