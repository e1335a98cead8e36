use super::kit::{AdminServer, admin};
use crate::kit::TWO_A_MINUTE;
use crate::kit::folder::Folder;
use tidegate_testkit::golden;

#[tokio::test]
async fn the_published_document_is_the_served_one() {
    let folder = Folder::make();
    let file = folder.write("tidegate.yaml", format!("{TWO_A_MINUTE}\n{}", admin("")));
    let server = AdminServer::start(&file).await;
    let document = server.get("/openapi.json").await.json();
    let text = format!("{document:#}\n");
    golden::compare(&golden::docs("reference/admin-openapi.json"), &text);
}
