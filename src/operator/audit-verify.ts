import { createProgressBar } from '../client/command/common/progress-bar.ts'
import type { ChainEnd } from '../gateway/audit/audit-line.ts'
import { type AuditVerdict, type ChainVerdict, verifyAudit } from '../gateway/audit/verify-audit.ts'
import { CapfleetError } from '../shared/base/error.ts'

/**
 * `capfleet audit verify`: checks all files of an audit and prints its findings. Returns whether there is an audit
 * without problems. `expected` are chain ends printed by an earlier run, as CHAIN:LINE:HASH. Fails with bad-parameter.
 */
export async function runAuditVerify(folder: string, expected: readonly string[]): Promise<boolean> {
  const ends = new Map(expected.map(parseEnd))
  const bar = createProgressBar('verify')
  let verdict: AuditVerdict
  try {
    verdict = await verifyAudit(folder, {
      expected: ends,
      onProgress: (done, total) => bar.update(done, total),
    })
  } catch (cause) {
    throw new CapfleetError(
      'bad-parameter',
      `the audit in ${folder} cannot be read: ${(cause as Error).message}`,
      {
        cause,
      },
    )
  } finally {
    bar.clear()
  }
  process.stdout.write(formatVerdict(verdict))
  return verdict.isWhole && verdict.chains.length > 0
}

const END = /^(?<chain>.+):(?<seq>\d{1,15}):(?<hash>[0-9a-f]{64})$/

function parseEnd(text: string): readonly [string, ChainEnd] {
  const { chain, seq, hash } = END.exec(text)?.groups ?? {}
  if (chain === undefined || hash === undefined)
    throw new CapfleetError(
      'bad-parameter',
      `--expect must be CHAIN:LINE:HASH as printed before, got "${text}"`,
    )
  return [chain, { seq: Number(seq), hash }]
}

/** One line per problem, and one per chain with its end, which is worth recording elsewhere. */
export function formatVerdict({ chains, isWhole }: AuditVerdict): string {
  const lines = chains.flatMap((chain) => [...problemLines(chain), chainLine(chain)])
  const last =
    chains.length === 0
      ? 'there is no audit in this folder'
      : isWhole
        ? 'the audit is unchanged, provided that it ends where you know it ended'
        : 'THE AUDIT WAS CHANGED'
  return `${[...lines, last].join('\n')}\n`
}

function problemLines({ problems, problemCount }: ChainVerdict): readonly string[] {
  const lines = problems.map(({ kind, file, line, offset, says }) => {
    const place = line === 0 ? file : `${file}:${line} (byte ${offset})`
    return `${kind}  ${place}: ${says}`
  })
  const more = problemCount - problems.length
  return more === 0 ? lines : [...lines, `and ${more} more problems in this chain`]
}

function chainLine({ chain, files, lines, firstFile, end, tornBytes, problemCount }: ChainVerdict): string {
  const notes = [
    `${files} ${files === 1 ? 'file' : 'files'}`,
    `${lines} lines`,
    ...(firstFile > 1 ? [`starts with file ${firstFile}: older files are gone`] : []),
    ...(tornBytes > 0 ? [`${tornBytes} bytes of an incomplete last line`] : []),
    `ends at ${chain}:${end.seq}:${end.hash}`,
  ]
  return `${problemCount === 0 ? 'whole' : 'BROKEN'}  ${chain}: ${notes.join(', ')}`
}
