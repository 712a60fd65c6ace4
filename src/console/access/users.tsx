/** The users of the users file, for administrators. */
import { answered, gateway } from '../base/ask-gateway.ts'
import { useAsked } from '../base/asked.ts'
import { DataTable } from '../parts/data-table.tsx'
import { Failure, Waiting } from '../parts/notice.tsx'
import { TEXTS } from '../texts.ts'

export function Users() {
  const { access: texts } = TEXTS
  const list = useAsked(async (signal) => (await answered(gateway.GET('/v1/users', { signal }))).users, {
    key: 'users',
  })
  return (
    <section aria-labelledby="users-title">
      <h2 id="users-title">{texts.users}</h2>
      <p class="quiet">{texts.usersExplain}</p>
      <Failure failure={list.failure} again={list.again} />
      {list.value === undefined && list.failure === undefined ? <Waiting /> : null}
      {list.value === undefined ? null : (
        <DataTable label={texts.users} columns={texts.userColumns}>
          {list.value.map(({ name, role, ...bounds }) => (
            <tr key={name}>
              <td>{name}</td>
              <td>{role}</td>
              <td class="mono wide">
                {Object.entries(bounds)
                  .map(([bound, value]) => `${bound}=${value}`)
                  .join('  ') || TEXTS.none}
              </td>
            </tr>
          ))}
        </DataTable>
      )}
    </section>
  )
}
