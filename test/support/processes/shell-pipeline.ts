import { execFile } from 'node:child_process'

export interface PipelineResult {
  readonly stdout: string
  readonly stderr: string
  /** The exit status of each command. */
  readonly codes: readonly number[]
}

/**
 * Runs a bash pipeline with these variables in its environment. --norc: if its standard input is a socket, as Node
 * creates it, bash assumes a remote shell and reads the user's start-up file.
 */
export function shellPipeline(
  script: string,
  variables: Readonly<Record<string, string>> = {},
): Promise<PipelineResult> {
  return new Promise((resolve) => {
    execFile(
      'bash',
      ['--norc', '-c', `${script}; echo "codes: \${PIPESTATUS[*]}" >&2`],
      { env: { ...process.env, ...variables }, maxBuffer: 1 << 28 },
      (_error, stdout, stderr) => {
        const codes = /codes: ([\d ]+)\n$/.exec(stderr)?.[1] ?? ''
        resolve({ stdout, stderr, codes: codes.split(' ').map(Number) })
      },
    )
  })
}
