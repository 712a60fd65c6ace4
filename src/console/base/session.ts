/** Who is signed in, and their rights. */
import { useEffect, useState } from 'preact/hooks'
import { TEXTS } from '../texts.ts'
import {
  answered,
  gateway,
  Problem,
  type Schemas,
  useFormToken,
  whenSessionIsDoubtful,
} from './ask-gateway.ts'
import { renewalMs } from './session-renewal.ts'

export type Session = Schemas['Session']

export type Credentials = { readonly user: string; readonly password: string } | { readonly token: string }

export interface SignedIn {
  /** undefined: not known yet; null: nobody. */
  readonly session: Session | null | undefined
  /** Why it is unknown. */
  readonly failure: unknown
  readonly lookAgain: () => void
  readonly signIn: (credentials: Credentials) => Promise<void>
  readonly signOut: () => Promise<void>
}

export function useSession(): SignedIn {
  const [session, setSession] = useState<Session | null | undefined>()
  const [failure, setFailure] = useState<unknown>()
  const show = (next: Session | null): void => {
    useFormToken(next?.formToken ?? null)
    setFailure(undefined)
    setSession(next)
  }
  /** On failure a known session is kept: a gateway that does not answer has signed nobody out. */
  const look = (): void => void readSession().then(show, setFailure)
  useEffect(() => {
    whenSessionIsDoubtful(look)
    look()
  }, [])
  const expiresAt = session?.expiresAt
  useEffect(() => {
    const timer = setInterval(
      () => {
        if (!document.hidden) look()
      },
      renewalMs(expiresAt, Date.now()),
    )
    return () => clearInterval(timer)
  }, [expiresAt])
  return {
    session,
    failure,
    lookAgain: look,
    signIn: async (credentials) => show(await openSession(credentials)),
    signOut: async () => {
      await endSession()
      show(null)
    },
  }
}

export function may(session: Session, scope: Session['scopes'][number]): boolean {
  return session.scopes.includes(scope)
}

async function readSession(): Promise<Session | null> {
  try {
    return await answered(gateway.GET('/v1/session'))
  } catch (error) {
    if (isOver(error)) return null
    throw error
  }
}

async function endSession(): Promise<void> {
  try {
    await answered(gateway.DELETE('/v1/session'))
  } catch (error) {
    if (!isOver(error)) throw error
  }
}

function isOver(error: unknown): boolean {
  return error instanceof Problem && error.status === 401
}

async function openSession(credentials: Credentials): Promise<Session> {
  const folder = location.pathname.replace(/[^/]*$/, '')
  await answered(
    gateway.POST('/v1/session', {
      params: { query: { Path: folder } },
      headers: { authorization: authorizationOf(credentials) },
    }),
  )
  // Requested again, because a browser drops the cookie of an address that is neither https nor this machine.
  const session = await readSession()
  if (session !== null) return session
  throw new Problem({
    code: 'no-cookie',
    status: 0,
    detail: TEXTS.signIn.noCookie,
  })
}

function authorizationOf(credentials: Credentials): string {
  if ('token' in credentials) return `Bearer ${credentials.token.trim()}`
  const bytes = new TextEncoder().encode(`${credentials.user}:${credentials.password}`)
  return `Basic ${btoa(String.fromCharCode(...bytes))}`
}
