// The answer of a device that was taken for capfleet's own before it was probed shows which parameters it ignored.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { kindOfAnswer, passedOver } from '../../../../src/gateway/device/device-kind.ts'

const OURS = { 'capfleet-request-id': '93a90976-b6d0-4223-98bd-39df8d338128' }
const RANGE = 'TSBegin=1&TSEnd=2&TSUnit=nanos'

test('an answer that names its request is one of ours', () => {
  assert.equal(kindOfAnswer(OURS), 'capfleet')
  assert.equal(kindOfAnswer({ server: 'pcapd/3.1' }), 'api')
})

for (const [target, name] of [
  [`/api/v1/pcap/timerange?${RANGE}&MaxPackets=5`, 'MaxPackets'],
  [`/api/v1/pcap/timerange?${RANGE}&MaxBytes=500`, 'MaxBytes'],
  [`/api/v1/pcap/single?StreamName=a&FilterRE=GET`, 'FilterRE'],
  [`/api/v1/pcap/timerange?${RANGE}&Follow=true`, 'Follow'],
  [`/api/v1/pcap/timerange?${RANGE}&TSResolution=usec`, 'TSResolution'],
  [`/pcap/timerange?${RANGE}&FilterBPF=ip`, 'FilterBPF'],
  [`/api/v1/pcap/single?StreamName=a&Slice=64`, 'Slice'],
  [`/api/v1/pcap/single?StreamName=a&TSMax=5`, 'TSMax'],
  [`/api/v1/pcap/splittime?StreamName=a&Start=1&Stop=2&TSMax=5`, 'TSMax'],
  [`/api/v1/pcap/splittime?StreamName=a&Start=1&Stop=2&FilterBPFDecap=true&FilterBPF=ip`, 'FilterBPFDecap'],
  [`/api/v1/pcap/splittime?StreamName=a&Start=1&Stop=2&Compression=zstd`, undefined],
  [`/api/v1/pcap/timerange?${RANGE}&FilterBPF=ip`, 'FilterBPF'],
  [`/api/v1/pcap/timerange?${RANGE}&Compression=fast&Slice=64`, 'Slice'],
  [`/api/v1/pcap/timerange?${RANGE}&TSMax=5`, 'TSMax'],
  [`/api/v1/pcap/timerange?${RANGE}&Compression=fast`, undefined],
  // For After, devices themselves report what they did.
  [`/api/v1/pcap/single?StreamName=a&After=5000`, undefined],
] as const)
  test(`${target} at a third-party device: ${name ?? 'nothing'} may have been ignored`, () => {
    assert.equal(passedOver(target, {}), name)
    assert.equal(passedOver(target, OURS), undefined)
  })
