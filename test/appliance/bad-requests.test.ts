// Mistakes in download requests are found before a slot is taken, and the error names them.
import assert from 'node:assert/strict'
import { join } from 'node:path'
import { test } from 'node:test'
import { ERROR_KINDS, type ErrorCode } from '../../src/shared/base/error.ts'
import { eventually } from '../support/eventually.ts'
import { writeBigCapture } from '../support/packets/big-capture.ts'
import { startTempAppliance, type TempAppliance } from '../support/processes/temp-appliance.ts'

const SINGLE = '/api/v1/pcap/single'
const RANGE = '/api/v1/pcap/timerange'
const SPLIT = '/api/v1/pcap/splittime'
const GOOD_RANGE = 'TSBegin=1&TSEnd=2&TSUnit=sec'
const BAD: readonly [path: string, param: string, code?: ErrorCode][] = [
  [SINGLE, 'StreamName'],
  [`${SINGLE}?StreamName=`, 'StreamName'],
  [`${SINGLE}?StreamName=../../etc/passwd`, 'StreamName', 'unknown-capture'],
  [`${SINGLE}?StreamName=%2e%2e`, 'StreamName', 'unknown-capture'],
  [`${SINGLE}?StreamName=a%00b`, 'StreamName'],
  [`${SINGLE}?StreamName=big&StreamName=big`, 'StreamName'],
  [`${SINGLE}?StreamName=big&Compression=lzma`, 'Compression'],
  [`${SINGLE}?StreamName=big&Compression=lz4`, 'Compression'],
  [`${SINGLE}?StreamName=big&Compression=10`, 'Compression'],
  [`${SINGLE}?StreamName=big&Slice=0`, 'Slice'],
  [`${SINGLE}?StreamName=big&Slice=12289`, 'Slice'],
  [`${SINGLE}?StreamName=big&Slice=abc`, 'Slice'],
  [`${SINGLE}?StreamName=big&TSMax=0`, 'TSMax'],
  [`${SINGLE}?StreamName=big&TSMax=-5`, 'TSMax'],
  [`${SINGLE}?StreamName=big&TSResolution=ps`, 'TSResolution'],
  [`${SINGLE}?StreamName=big&Wait=601`, 'Wait'],
  [`${SINGLE}?StreamName=big&Wait=soon`, 'Wait'],
  [`${SINGLE}?StreamName=big&Strict=2`, 'Strict'],
  [`${SINGLE}?StreamName=big&Strict=1&streamname=x`, 'streamname'],
  [`${SINGLE}?StreamName=big&FilterBPF=%zz`, 'FilterBPF'],
  [`${SINGLE}?StreamName=big&FilterBPF=tcp%01`, 'FilterBPF'],
  [`${SINGLE}?StreamName=big&FilterBPF=${'a'.repeat(16_385)}`, 'FilterBPF'],
  [`${SINGLE}?StreamName=big&FilterBPF=tcp+prot+80`, 'FilterBPF', 'bad-bpf'],
  [`${SINGLE}?StreamName=big&FilterBPF=(tcp`, 'FilterBPF', 'bad-bpf'],
  [`${SINGLE}?StreamName=big&FilterBPF=host+example.com`, 'FilterBPF', 'bad-bpf'],
  [`${SINGLE}?StreamName=big&FilterBPF=ip6+protochain+6`, 'FilterBPF', 'bad-bpf'],
  [`${SINGLE}?StreamName=big&FilterBPFDecap=yes`, 'FilterBPFDecap'],
  [`${SINGLE}?StreamName=big&FilterFrame=capture.port==x`, 'FilterFrame', 'bad-frame-filter'],
  [`${SINGLE}?StreamName=big&FilterRE=(GET`, 'FilterRE', 'bad-regex'],
  [`${SINGLE}?StreamName=big&FilterRE=(a)\\1`, 'FilterRE', 'bad-regex'],
  [`/pcap/timerange?${GOOD_RANGE}&TSMode=vendorA7130`, 'TSMode'],
  [`/pcap/splittime?StreamName=big&Start=1&Stop=2&FilterPort=a`, 'FilterPort'],
  [`/stream/ssize?StreamName=big&StreamView=split_1MB`, 'StreamView'],
  [`${SINGLE}?StreamName=big&TSMode=quartz`, 'TSMode'],
  [`${SINGLE}?StreamName=big&MaxBytes=23`, 'MaxBytes'],
  [`${SINGLE}?StreamName=big&MaxPackets=0`, 'MaxPackets'],
  [`${SINGLE}?StreamName=big&After=-1`, 'After'],
  [`${SINGLE}?StreamName=big&After=9223372036854775808`, 'After'],
  [`${SINGLE}?StreamName=big&After=24&Follow=1`, 'After'],
  [`/pcap/single?StreamName=big&After=all`, 'After'],
  [RANGE, 'TSBegin'],
  [`${RANGE}?TSBegin=1`, 'TSEnd'],
  [`${RANGE}?TSBegin=a&TSEnd=2`, 'TSBegin'],
  [`${RANGE}?TSBegin=1&TSEnd=b`, 'TSEnd'],
  [`${RANGE}?TSBegin=3&TSEnd=2`, 'TSBegin'],
  [`${RANGE}?TSBegin=1&TSEnd=2&TSUnit=week`, 'TSUnit'],
  [`${RANGE}?TSBegin=99999999998&TSEnd=99999999999&TSUnit=sec`, 'TSBegin'],
  [`${RANGE}?TSBegin=20260230_000000&TSEnd=20260301_000000`, 'TSBegin'],
  [`${RANGE}?TSBegin=20260308_023000&TSEnd=20260309_000000&TSZone=New_York`, 'TSBegin'],
  [`${RANGE}?${GOOD_RANGE}&TSZone=Nowhere`, 'TSZone', 'bad-timezone'],
  [`${RANGE}?${GOOD_RANGE}&TSZone=West`, 'TSZone', 'ambiguous-timezone'],
  [`${RANGE}?${GOOD_RANGE}&Follow=1&TSMode=vendorB3550`, 'Follow'],
  [`${SPLIT}?StreamName=big&Start=1`, 'Stop'],
  [`${SPLIT}?StreamName=big&Start=2&Stop=1`, 'Start'],
  [`${SPLIT}?StreamName=big&Start=x&Stop=1`, 'Start'],
  [`${SPLIT}?Start=1&Stop=2`, 'StreamName'],
]

const AT_ONCE_MS = 100

test(`${BAD.length} bad requests: each refused with the name of the parameter, at once, while all slots are in use`, async () => {
  await using appliance = await startTempAppliance()
  const file = join(appliance.folder, 'big.pcap')
  await writeBigCapture(file)
  await appliance.importFiles('big', file)
  using held = new DisposableStack()
  for (let index = 0; index < 4; index++)
    held.use(await appliance.open(`${SINGLE}?StreamName=big&rand=${index}`))
  await eventually(async () => (await appliance.slotsUsed()) === 4, { message: 'four readers' })
  assert.ok(BAD.length >= 40)
  const late: string[] = []
  for (const [path, param, code = 'bad-parameter'] of BAD) {
    const startedMs = performance.now()
    const answer = await appliance.get(path)
    if (performance.now() - startedMs >= AT_ONCE_MS) late.push(path)
    const problem = answer.json()
    assert.deepEqual(
      [answer.status, problem.code, problem.param],
      [ERROR_KINDS[code].status, code, param],
      path,
    )
    assert.equal(answer.headers['content-type'], 'application/problem+json')
    assert.ok(typeof problem.detail === 'string' && typeof problem.requestId === 'string')
  }
  for (const path of late) await assertAtOnce(appliance, path)
  assert.equal(await appliance.slotsUsed(), 4)
})

/** On a busy machine any answer is late now and then; one that is always late has done work. */
async function assertAtOnce(appliance: TempAppliance, path: string): Promise<void> {
  const tookMs: number[] = []
  for (let attempt = 0; attempt < 5; attempt++) {
    const startedMs = performance.now()
    await appliance.get(path)
    tookMs.push(performance.now() - startedMs)
  }
  assert.ok(Math.min(...tookMs) < AT_ONCE_MS, `${path} took ${tookMs.map(Math.round).join(', ')} ms`)
}
