// The output of ethtool (6.1, of Debian 12) for a physical interface is parsed correctly.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  parseFeatures,
  parseHardwareStamps,
  parseRxQueues,
  parseRxRing,
} from '../../../appliance/doctor/ethtool-report.ts'

const RINGS = `Ring parameters for enp1s0f0:
Pre-set maximums:
RX:		8192
RX Mini:	n/a
RX Jumbo:	n/a
TX:		8192
Current hardware settings:
RX:		1024
RX Mini:	n/a
RX Jumbo:	n/a
TX:		1024
RX Buf Len:		n/a
`

const CHANNELS = `Channel parameters for enp1s0f0:
Pre-set maximums:
RX:		n/a
TX:		n/a
Other:		1
Combined:	63
Current hardware settings:
RX:		n/a
TX:		n/a
Other:		1
Combined:	8
`

const STAMPS = `Time stamping parameters for enp1s0f0:
Capabilities:
	hardware-transmit
	software-transmit
	hardware-receive
	software-receive
	software-system-clock
	hardware-raw-clock
PTP Hardware Clock: 0
Hardware Transmit Timestamp Modes:
	off
	on
Hardware Receive Filter Modes:
	none
	all
`

test('features, with those that cannot be changed', () => {
  const features = parseFeatures(
    'Features for eth0:\ntx-checksumming: on\n\ttx-checksum-ipv4: off [fixed]\n' +
      'generic-receive-offload: on\nlarge-receive-offload: off [fixed]\nrx-gro-hw: on [fixed]\n',
  )
  assert.deepEqual(features.get('generic-receive-offload'), { isOn: true, isFixed: false })
  assert.deepEqual(features.get('large-receive-offload'), { isOn: false, isFixed: true })
  assert.deepEqual(features.get('tx-checksum-ipv4'), { isOn: false, isFixed: true })
  assert.equal(features.size, 5)
})

test('the ring and the queues for arriving packets, present and largest', () => {
  assert.deepEqual(parseRxRing(RINGS), { current: 1024, max: 8192 })
  assert.deepEqual(parseRxQueues(CHANNELS), { current: 8, max: 63 })
  const split = CHANNELS.replaceAll('RX:		n/a', 'RX:		4')
  assert.deepEqual(parseRxQueues(split), { current: 12, max: 67 })
})

test('hardware time stamps count only when they are for every packet', () => {
  assert.equal(parseHardwareStamps(STAMPS), true)
  assert.equal(parseHardwareStamps(STAMPS.replace('\tall\n', '\tptpv2-event\n')), false)
  assert.equal(parseHardwareStamps(STAMPS.replace('\thardware-receive\n', '')), false)
})

test('a driver that says nothing has no figures', () => {
  for (const output of ['', undefined]) {
    assert.deepEqual(parseRxRing(output), { current: undefined, max: undefined })
    assert.deepEqual(parseRxQueues(output), { current: undefined, max: undefined })
    assert.equal(parseHardwareStamps(output), false)
    assert.equal(parseFeatures(output).size, 0)
  }
})
