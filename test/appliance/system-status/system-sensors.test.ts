// The sensors of another machine than this one: the files of its /proc and /sys are in a folder.

import assert from 'node:assert/strict'
import { mkdir, rm, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { after, before, test } from 'node:test'
import { diskIoReader } from '../../../appliance/machine/disk-io-sensor.ts'
import { detectDisks } from '../../../appliance/machine/disk-names.ts'
import { readDiskPresence } from '../../../appliance/machine/disk-presence.ts'
import { hostReader } from '../../../appliance/machine/host-sensor.ts'
import { readHwmon, readPowerSupplies } from '../../../appliance/machine/hwmon-sensor.ts'
import type { MachineRoots } from '../../../appliance/machine/kernel-files.ts'
import { detectLinks, linkReader } from '../../../appliance/machine/link-sensor.ts'
import { diskGroup } from '../../../appliance/system-status/disk-groups.ts'
import { fanGroup, powerGroup, temperatureGroup } from '../../../appliance/system-status/hwmon-groups.ts'
import { describePorts, linkGroup } from '../../../appliance/system-status/link-group.ts'
import { otherGroup } from '../../../appliance/system-status/other-group.ts'
import { type TempFolder, tempFolder } from '../../support/temp-folder.ts'

const never = new AbortController().signal
let folder: TempFolder
let roots: MachineRoots

const FILES: Readonly<Record<string, string>> = {
  'sys/class/hwmon/hwmon0/name': 'coretemp',
  'sys/class/hwmon/hwmon0/temp1_input': '51000',
  'sys/class/hwmon/hwmon0/temp1_label': 'Package id 0',
  'sys/class/hwmon/hwmon0/temp2_input': '48000',
  'sys/class/hwmon/hwmon0/temp2_label': 'Core 0',
  'sys/class/hwmon/hwmon1/name': 'coretemp',
  'sys/class/hwmon/hwmon1/temp1_input': '53500',
  'sys/class/hwmon/hwmon1/temp1_label': 'Package id 1',
  'sys/class/hwmon/hwmon2/name': 'pch_lewisburg',
  'sys/class/hwmon/hwmon2/temp1_input': '40000',
  'sys/class/hwmon/hwmon3/name': 'mlx5',
  'sys/class/hwmon/hwmon3/temp1_input': '62000',
  'sys/class/hwmon/hwmon3/temp1_label': 'asic',
  'sys/class/hwmon/hwmon3/temp2_input': '35000',
  'sys/class/hwmon/hwmon3/temp2_label': 'Module0',
  'sys/class/hwmon/hwmon10/name': 'nct6775',
  'sys/class/hwmon/hwmon10/fan1_input': '1200',
  'sys/class/hwmon/hwmon10/fan2_input': '0',
  'sys/class/hwmon/hwmon10/fan10_input': '900',
  'sys/class/hwmon/hwmon11/name': 'power_meter',
  'sys/class/hwmon/hwmon11/power1_average': '231500000',
  'sys/class/power_supply/PSU1/type': 'Mains',
  'sys/class/power_supply/PSU1/online': '1',
  'sys/class/power_supply/PSU2/type': 'Mains',
  'sys/class/power_supply/PSU2/online': '0',
  'sys/class/power_supply/BAT0/type': 'Battery',
  'sys/class/net/eth1/carrier': '1',
  'sys/class/net/eth1/speed': '10000',
  'sys/class/net/eth1/statistics/rx_packets': '12',
  'sys/class/net/eth1/statistics/rx_bytes': '1200',
  'sys/class/net/eth2/carrier': '0',
  'sys/class/net/eth2/speed': '-1',
  'sys/class/net/mgmt/carrier': '1',
  'sys/block/sda/removable': '0',
  'sys/block/sdb/removable': '1',
  'sys/block/nvme0n1/removable': '0',
  'sys/block/nvme0n1/device/model': 'Fast Disk',
  'sys/block/loop0/removable': '0',
  'sys/devices/system/edac/mc/mc0/ce_count': '4',
  'sys/devices/system/edac/mc/mc0/ue_count': '1',
  'proc/net/route': 'Iface\tDestination\tGateway\nmgmt\t00000000\t0100000A\teth1\neth1\t0000000A\t00000000\n',
  'proc/uptime': '7200.50 100.00',
  'proc/meminfo': 'MemTotal:  1000 kB\nMemFree:   500 kB\nBuffers:    10 kB\nCached:    200 kB\n',
  'proc/vmstat': 'pgpgin 77\npgpgout 5\n',
  'proc/sys/fs/file-nr': '1234\t0\t99999',
  'proc/stat': 'cpu  100 0 100 800 0 0 0 0 0 0\ncpu0 1 2 3\n',
  'proc/diskstats': '8 0 sda 1 0 1000 5 1 0 2000 5 3 9 9\n8 1 sda1 1 0 9999 5 1 0 9999 5 9 9 9\n',
}

before(async () => {
  folder = await tempFolder()
  roots = { proc: join(folder.path, 'proc'), sys: join(folder.path, 'sys') }
  for (const [path, text] of Object.entries(FILES)) await put(path, text)
})
after(() => folder[Symbol.asyncDispose]())

async function put(path: string, text: string): Promise<void> {
  const file = join(folder.path, path)
  await mkdir(dirname(file), { recursive: true })
  await writeFile(file, `${text}\n`)
}

test('temperatures are found where drivers put them; what is not there is listed', async () => {
  const group = temperatureGroup(await readHwmon(roots, never))
  const named = ['CPU0', 'CPU1', 'PCH', 'NIC', 'Transceiver0'].map((name) => group[`Temperature_${name}`])
  assert.deepEqual(named, [51, 53.5, 40, 62, 35])
  assert.deepEqual(group.unavailable, [
    'Temperature_SYS',
    'Temperature_PER',
    'Temperature_AirIn',
    'Temperature_AirOut',
    'Temperature_Transceiver1',
  ])
})

test('fans are sorted by number; a stopped fan is a reading', async () => {
  const group = fanGroup(await readHwmon(roots, never))
  assert.deepEqual([group.Fan_SYS0, group.Fan_SYS1, group.Fan_SYS2, group.Fan_SYS3], [1200, 0, 900, 0])
  assert.deepEqual((group.unavailable as string[])[0], 'Fan_SYS3')
})

test('power supplies and the power that is drawn', async () => {
  const group = powerGroup(await readHwmon(roots, never), await readPowerSupplies(roots, never))
  assert.deepEqual([group.PSU0_Status, group.PSU1_Status, group.PSU_PowerWatt], [true, false, 232])
  assert.deepEqual(group.unavailable, [])
})

test('links, their speed and their port layout', async () => {
  const read = linkReader(roots, { cap0: 'eth1', cap1: 'eth2', cap2: 'absent', man0: 'mgmt' })
  const links = await read(never)
  const group = linkGroup(links)
  assert.deepEqual([group.cap0_link, group.cap1_link, group.man0_link], [true, false, true])
  const unavailable = group.unavailable as string[]
  assert.deepEqual([unavailable.includes('cap1_link'), unavailable.includes('cap2_link')], [false, true])
  assert.deepEqual([links.get('cap0')?.speedMbps, links.get('cap1')?.speedMbps], [10_000, undefined])
  assert.deepEqual([links.get('cap0')?.packets, links.get('cap0')?.bytes], [12, 1200])
  assert.equal(describePorts(links), 'cap0=eth1 cap1=eth2')
})

test('the management interface is that of the default route', async () => {
  assert.deepEqual(await detectLinks(roots, never), { man0: 'mgmt' })
})

test('disks are those that cannot be removed; a disk that was pulled is not present', async () => {
  assert.deepEqual(await detectDisks(roots, never), { ssd0: 'nvme0n1', ssd1: 'sda' })
  const names = { os0: 'sda', ssd0: 'nvme0n1', ssd1: 'nvme7n1' }
  const disks = await readDiskPresence(roots, names, never)
  assert.equal(disks.get('ssd0')?.model, 'Fast Disk')
  const health = { model: '', serial: '', celsius: 38.4, isHealthy: true, errors: 0 }
  const group = diskGroup({ spaces: new Map(), disks, health: new Map([['sda', health]]) })
  assert.deepEqual(
    [group.DiskPresent_os0, group.DiskTemperature_os0, group.DiskSMART_os0, group.DiskPresent_ssd1],
    [true, 38, 0, false],
  )
  const unavailable = group.unavailable as string[]
  assert.deepEqual(
    ['DiskSMART_os0', 'DiskPresent_ssd1', 'DiskPresent_ssd2', 'FreeGB_Store0'].map((name) =>
      unavailable.includes(name),
    ),
    [false, false, true, true],
  )
})

test('memory, uptime and ECC errors; the processors need two readings', async () => {
  const read = hostReader(roots)
  const first = await read(never)
  assert.equal(first.cpuLoadPct, undefined)
  await put('proc/stat', 'cpu  150 0 150 900 0 0 0 0 0 0')
  const host = await read(never)
  assert.equal(host.cpuLoadPct, 50)
  const group = otherGroup({ host, store: undefined, serial: '', portConfig: '', version: '1' })
  assert.deepEqual(
    [group.MemFree, group.MemCached, group.MemBuffer, group.PageInByte, group.FDCnt, group.MemErrorECC],
    [500 * 1024, 200 * 1024, 10 * 1024, 77 * 1024, 1234, 5],
  )
  assert.ok(Math.abs(Number(group.UptimeHour) - 2) < 0.001)
  const unavailable = group.unavailable as string[]
  assert.ok(unavailable.includes('MemMapped') && unavailable.includes('StoreSize'))
})

test('disk rates need two readings, count whole disks once, and never go below zero', async () => {
  const read = diskIoReader(roots, ['sda'])
  const first = await read(never)
  assert.deepEqual([first.inFlight, first.readGbps, first.writeGbps], [3, undefined, undefined])
  await put('proc/diskstats', '8 0 sda 1 0 3000 5 1 0 1000 5 0 9 9')
  const second = await read(never)
  const seconds = Number(second.atNs - first.atNs) / 1e9
  assert.equal(second.inFlight, 0)
  assert.ok(Math.abs(Number(second.readGbps) * seconds - (2000 * 512 * 8) / 1e9) < 1e-9)
  assert.equal(second.writeGbps, 0)
})

test('a machine without any of it has no readings and no failure', async () => {
  await using empty = await tempFolder()
  const nothing = { proc: join(empty.path, 'proc'), sys: join(empty.path, 'sys') }
  await rm(nothing.proc, { force: true, recursive: true })
  const hwmon = await readHwmon(nothing, never)
  assert.equal((temperatureGroup(hwmon).unavailable as string[]).length, 10)
  assert.equal((fanGroup(hwmon).unavailable as string[]).length, 8)
  assert.equal((powerGroup(hwmon, await readPowerSupplies(nothing, never)).unavailable as string[]).length, 3)
  assert.equal((await linkReader(nothing, { cap0: 'eth1' })(never)).size, 0)
  assert.deepEqual([await detectDisks(nothing, never), await detectLinks(nothing, never)], [{}, {}])
  assert.equal((await hostReader(nothing)(never)).uptimeSeconds, undefined)
})
