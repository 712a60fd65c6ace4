// The most that a merge in pcapng can have, known before anything is fetched.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { BodyResult } from '../../../../../src/gateway/fetch/body/body.ts'
import { mergedBytesMax, PcapngFile } from '../../../../../src/gateway/fetch/body/merged-pcapng.ts'
import { planDownload } from '../../../../../src/gateway/fleet/plan/plan.ts'
import { withinBounds } from '../../../../../src/gateway/fleet/plan/within-bounds.ts'
import { UNBOUNDED } from '../../../../../src/shared/base/caller.ts'
import {
  countOption,
  IN_NANOSECONDS,
  interfaceDescription,
  interfaceStatistics,
  PcapngOption,
  sectionHeader,
  textOption,
} from '../../../../../src/shared/pcap/pcapng-blocks.ts'
import { parseDownloadQuery } from '../../../../../src/shared/query/download/parse-download-query.ts'
import { parseQueryString } from '../../../../../src/shared/query/parse-query-string.ts'

const PORTS = 200
const SITE = 'a site with quite a long name, '.repeat(3)
const DEVICES = ['a'.repeat(60), 'b'.repeat(60)]
const GIVEN = 'TSBegin=1&TSEnd=2&TSUnit=sec&Format=pcapng'

test('includes the names of devices and sites that each of very many ports gets', () => {
  const parsed = parseDownloadQuery('timerange', parseQueryString(GIVEN), { zone: 'UTC', nowNs: 0n })
  const plan = planDownload(withinBounds(parsed, UNBOUNDED), DEVICES, 9)
  const file = new PcapngFile({ plan, siteOf: () => SITE, missing: [] })
  let ofDevices = 0
  const parts = DEVICES.map((device) => {
    const blocks = file.interfaces.blocksOf(device, { alignNs: 0n, isContinued: false })
    let bytes = sectionHeader([]).length
    for (let port = 0; port < PORTS; port += 1) {
      const described = interfaceDescription({ linkType: 1, snaplen: 65_535 }, [
        textOption(PcapngOption.interfaceName, `d:cap${port}`),
        IN_NANOSECONDS,
      ])
      blocks.interface(described)
      const delivered = countOption(PcapngOption.statisticsDelivered, 0n)
      bytes += described.length + interfaceStatistics({ interfaceNumber: port, atNs: 0n }, [delivered]).length
    }
    ofDevices += bytes
    return { device, site: SITE, bytes: BigInt(bytes) }
  })
  const merged = file.head.length + file.closing({ perDevice: [] } as unknown as BodyResult, 0).length
  assert.ok(merged > ofDevices, 'the sum of the devices is too small')
  const most = Number(mergedBytesMax(plan.query, parts))
  assert.ok(merged <= most && most < 2 * merged, `${merged} of ${most}`)
})
