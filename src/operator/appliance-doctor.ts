import { loadApplianceConfig } from '../../appliance/appliance-config.ts'
import { examine } from '../../appliance/doctor/doctor.ts'
import type { Finding } from '../../appliance/doctor/finding.ts'

/**
 * `capfleet appliance doctor`: prints its findings, as a table or as JSON. Returns whether there is no problem. Fails
 * with bad-config.
 */
export async function runDoctor(configPath: string, { json }: { readonly json: boolean }): Promise<boolean> {
  const findings = await examine(await loadApplianceConfig(configPath))
  const text = json ? JSON.stringify({ findings }, undefined, 2) : formatFindings(findings)
  process.stdout.write(`${text}\n`)
  return findings.every(({ level }) => level !== 'problem')
}

/** One line per finding, followed by what to change; a count at the end. */
export function formatFindings(findings: readonly Finding[]): string {
  const width = (of: (finding: Finding) => string): number =>
    Math.max(0, ...findings.map((finding) => of(finding).length))
  const subjectWidth = width(({ subject }) => subject)
  const checkWidth = width(({ check }) => check)
  const lines = findings.flatMap(({ level, subject, check, detail, fix }) => {
    const head = `${level.padEnd('warning'.length)}  ${subject.padEnd(subjectWidth)}  ${check.padEnd(checkWidth)}  `
    return [`${head}${detail}`, ...(fix === '' ? [] : [`${' '.repeat(head.length)}-> ${fix}`])]
  })
  const count = (level: Finding['level']): string => {
    const { length } = findings.filter((finding) => finding.level === level)
    return `${length} ${level}${length === 1 ? '' : 's'}`
  }
  return [...lines, '', `${count('problem')}, ${count('warning')}`].join('\n')
}
