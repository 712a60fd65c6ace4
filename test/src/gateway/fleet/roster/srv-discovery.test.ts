import assert from 'node:assert/strict'
import { test } from 'node:test'
import { lookUpSrv } from '../../../../../src/gateway/fleet/roster/srv-discovery.ts'
import { TinyDns } from '../../../../support/servers/tiny-dns.ts'

const NEVER = new AbortController().signal
const SRV = '_capfleet._tcp.example.org'

test('finds the targets of the SRV records with all their addresses, in the order of their names', async () => {
  await using dns = await TinyDns.start([
    [SRV, 'SRV', '8443 NYC1.us.example.org'],
    [SRV, 'SRV', '443 lon1.eu.example.org'],
    [SRV, 'SRV', '443 gone.example.org'],
    ['nyc1.us.example.org', 'A', '192.0.2.20'],
    ['lon1.eu.example.org', 'AAAA', '2001:db8:0:0:0:0:0:1'],
    ['lon1.eu.example.org', 'A', '192.0.2.10'],
  ])
  assert.deepEqual(await lookUpSrv({ srv: SRV, dnsServers: [dns.address] }, NEVER), [
    { name: 'gone', host: 'gone.example.org', port: 443, addresses: [] },
    { name: 'lon1', host: 'lon1.eu.example.org', port: 443, addresses: ['192.0.2.10', '2001:db8::1'] },
    { name: 'nyc1', host: 'NYC1.us.example.org', port: 8443, addresses: ['192.0.2.20'] },
  ])
})

test('fails when the server does, and when there is no record: both may be an outage', async () => {
  await using dns = await TinyDns.start([[SRV, 'SRV', '443 lon1.example.org']])
  const lookUp = (srv: string) => lookUpSrv({ srv, dnsServers: [dns.address] }, NEVER)
  await assert.rejects(lookUp('_other._tcp.example.org'), { code: 'ENOTFOUND' })
  dns.isBroken = true
  await assert.rejects(lookUp(SRV), { code: 'ESERVFAIL' })
})

test('stops at once when asked to, even if the server does not answer', async () => {
  await using dns = await TinyDns.start([])
  dns.isSilent = true
  const stop = new AbortController()
  const looking = lookUpSrv({ srv: SRV, dnsServers: [dns.address] }, stop.signal)
  stop.abort()
  await assert.rejects(looking, { code: 'ECANCELLED' })
})
