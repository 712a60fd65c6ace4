/** The disks' own health reports, from smartctl (Debian package smartmontools). */
import { z } from 'zod'
import { runTool } from './run-tool.ts'

export interface DiskHealth {
  readonly model: string
  readonly serial: string
  readonly celsius: number | undefined
  /** Whether the disk's own verdict is "passed". */
  readonly isHealthy: boolean
  /** Bad sectors, media errors and the like; 0 = none. */
  readonly errors: number
}

/** The part of `smartctl --json` that is used. */
const outputSchema = z.object({
  model_name: z.string().default(''),
  serial_number: z.string().default(''),
  smart_status: z.object({ passed: z.boolean() }),
  temperature: z.object({ current: z.number() }).optional(),
  nvme_smart_health_information_log: z.object({ media_errors: z.number() }).optional(),
  ata_smart_attributes: z
    .object({ table: z.array(z.object({ id: z.number(), raw: z.object({ value: z.number() }) })) })
    .optional(),
})

/** ATA attributes that count bad sectors: reallocated, pending, uncorrectable. */
const BAD_SECTOR_ATTRIBUTES = new Set([5, 197, 198])

/** Reads the health of each disk, by its name; disks without SMART, or all without smartctl, are absent. */
export async function readSmart(
  disks: readonly string[],
  signal: AbortSignal,
): Promise<ReadonlyMap<string, DiskHealth>> {
  const found = new Map<string, DiskHealth>()
  for (const disk of disks) {
    const args = ['--json', '--info', '--health', '--attributes', `/dev/${disk}`]
    const output = await runTool('smartctl', { args, signal })
    const health = output === undefined ? undefined : parseSmart(output)
    if (health) found.set(disk, health)
  }
  return found
}

/** Returns undefined if the text is not smartctl's output for a disk with SMART. */
export function parseSmart(output: string): DiskHealth | undefined {
  try {
    const parsed = outputSchema.parse(JSON.parse(output))
    const badSectors = (parsed.ata_smart_attributes?.table ?? [])
      .filter(({ id }) => BAD_SECTOR_ATTRIBUTES.has(id))
      .reduce((sum, { raw }) => sum + raw.value, 0)
    return {
      model: parsed.model_name,
      serial: parsed.serial_number,
      celsius: parsed.temperature?.current,
      isHealthy: parsed.smart_status.passed,
      errors: badSectors + (parsed.nvme_smart_health_information_log?.media_errors ?? 0),
    }
  } catch {
    return undefined
  }
}
