//! `GET /api/v1/tables/{name}/access`

use labdata_application::{
    Error,
    catalog::table_access::{WhoMay, table_access},
};
use labdata_domain::{
    ids::UserId,
    people::{rights::TableRight, tenancy::User},
};
use labdata_request_body::output;

use super::{TablePath, table_view::TableAccessView};
use crate::{About, Call, Method, NoBody, Operation, Read, Tag, people::users::UserRole};

output! {
    /// Groups and users that may read and write a table.
    #[derive(Clone, Debug)]
    pub struct WhoMayView as "WhoMay" from who: WhoMay {
        /// Groups whose members may; `{}` for everyone of the organization.
        access: TableAccessView = (&who.table.access).into(),
        /// Users who may read the table, by their e-mail addresses. Disabled ones are left out.
        users: Vec<UserRightView> = who.users.into_iter().map(UserRightView::from).collect(),
    }
}

output! {
    /// Right of a user to a table.
    #[derive(Clone, Debug)]
    pub struct UserRightView as "UserRight" from pair: (User, TableRight) {
        /// The user's id.
        id: UserId = pair.0.id,
        /// E-mail address.
        #[example = "ada@lab.example"]
        email: String = pair.0.email,
        /// Its name.
        #[example = "Ada Lovelace"]
        name: String = pair.0.name,
        /// Role of the user.
        #[example = "member"]
        role: UserRole = pair.0.role.as_str().into(),
        /// True if the user may write it, too.
        may_write: bool = pair.1 == TableRight::Write,
    }
}

pub(super) fn operation() -> Operation {
    About {
        name: "get_table_access",
        method: Method::Get,
        path: "/api/v1/tables/{name}/access",
        tag: Tag::Tables,
        summary: "Tells who may read and write a table",
        description: "By the roles and groups of now. A key may have fewer scopes than its user, or fewer tables.",
        returns: "Groups and users",
        refusals: &[],
    }
    .runs(run)
}

async fn run(call: Call<Read, NoBody, (), TablePath>) -> Result<WhoMayView, Error> {
    let who = table_access(&call.services, &call.actor, &call.path.name).await?;
    Ok(who.into())
}
