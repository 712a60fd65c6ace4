import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { refuseSecretsBelow } from './suite-secrets.ts'

export interface TempFolder extends AsyncDisposable {
  readonly path: string
}

/** An empty folder that is removed with its content on dispose, which fails if anything has left a secret there. */
export async function tempFolder(): Promise<TempFolder> {
  const path = await mkdtemp(join(tmpdir(), 'capfleet-test-'))
  return {
    path,
    [Symbol.asyncDispose]: async () => {
      await refuseSecretsBelow(path)
      await rm(path, { recursive: true, force: true })
    },
  }
}
