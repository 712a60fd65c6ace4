/** The sign-in page. */
import { useState } from 'preact/hooks'
import { useAction } from './base/asked.ts'
import type { SignedIn } from './base/session.ts'
import { Failure } from './parts/notice.tsx'
import { TEXTS } from './texts.ts'

export function SignIn({ signIn }: Pick<SignedIn, 'signIn'>) {
  const { signIn: texts } = TEXTS
  const [isToken, setToken] = useState(false)
  const { isBusy, failure, run } = useAction()
  const submit = (event: SubmitEvent): void => {
    event.preventDefault()
    const given = new FormData(event.currentTarget as HTMLFormElement)
    const text = (name: string) => String(given.get(name) ?? '')
    run(() => signIn(isToken ? { token: text('token') } : { user: text('user'), password: text('password') }))
  }
  return (
    <main class="sign-in">
      <form onSubmit={submit}>
        <h1>{texts.title}</h1>
        {isToken ? (
          <label>
            {texts.token}
            <input name="token" type="password" autocomplete="off" required />
          </label>
        ) : (
          <>
            <label>
              {texts.user}
              <input name="user" autocomplete="username" autocapitalize="none" required autofocus />
            </label>
            <label>
              {texts.password}
              <input name="password" type="password" autocomplete="current-password" required />
            </label>
          </>
        )}
        <Failure failure={failure} />
        <button type="submit" class="primary" disabled={isBusy}>
          {isBusy ? texts.busy : texts.button}
        </button>
        <button type="button" class="plain" onClick={() => setToken(!isToken)}>
          {isToken ? texts.byPassword : texts.byToken}
        </button>
      </form>
    </main>
  )
}
