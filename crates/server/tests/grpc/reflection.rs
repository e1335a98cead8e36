//! Server reflection for tools.

use crate::kit::{EDGE, Server, in_time};
use futures_util::stream;
use prost::Message;
use tonic_reflection::pb::v1::server_reflection_client::ServerReflectionClient;
use tonic_reflection::pb::v1::server_reflection_request::MessageRequest;
use tonic_reflection::pb::v1::server_reflection_response::MessageResponse;
use tonic_reflection::pb::v1::{ServerReflectionRequest, ServerReflectionResponse};
use tonic_reflection::pb::v1alpha;

fn question(message: MessageRequest) -> ServerReflectionRequest {
    ServerReflectionRequest {
        host: "here".to_owned(),
        message_request: Some(message),
    }
}

/// Returns the responses to all requests, sent over one stream.
async fn ask(server: &Server, questions: Vec<MessageRequest>) -> Vec<ServerReflectionResponse> {
    let mut client = ServerReflectionClient::new(server.channel().await);
    let questions: Vec<_> = questions.into_iter().map(question).collect();
    let answer = client.server_reflection_info(stream::iter(questions));
    let mut answers = in_time(answer).await.unwrap().into_inner();
    let mut all = Vec::new();
    while let Some(answer) = in_time(answers.message()).await.unwrap() {
        all.push(answer);
    }
    all
}

#[tokio::test]
async fn services_are_listed_and_each_can_be_described() {
    let server = Server::start(EDGE).await;
    let answers = ask(&server, vec![MessageRequest::ListServices(String::new())]).await;
    let Some(MessageResponse::ListServicesResponse(services)) = &answers[0].message_response else {
        panic!("{answers:?}");
    };
    let names: Vec<_> = services.service.iter().map(|it| it.name.clone()).collect();
    assert_eq!(
        names,
        [
            "envoy.service.ratelimit.v3.RateLimitService",
            "kuadrant.service.ratelimit.v1.RateLimitService",
            "grpc.health.v1.Health",
            "grpc.reflection.v1.ServerReflection",
            "grpc.reflection.v1alpha.ServerReflection",
        ]
    );
    let questions = names
        .iter()
        .cloned()
        .map(MessageRequest::FileContainingSymbol);
    let answers = ask(&server, questions.collect()).await;
    assert_eq!(answers.len(), names.len());
    for (answer, name) in answers.iter().zip(&names) {
        assert_eq!(answer.valid_host, "here");
        let original = answer.original_request.clone().unwrap();
        assert_eq!(
            original,
            question(MessageRequest::FileContainingSymbol(name.clone()))
        );
        let Some(MessageResponse::FileDescriptorResponse(files)) = &answer.message_response else {
            panic!("{answer:?}");
        };
        let file = &files.file_descriptor_proto[0];
        let service = name.rsplit('.').next().unwrap();
        assert!(
            file.windows(service.len())
                .any(|it| it == service.as_bytes())
        );
    }
}

#[tokio::test]
async fn files_are_found_by_name_and_unknown_ones_reported() {
    let server = Server::start(EDGE).await;
    let answers = ask(
        &server,
        vec![
            MessageRequest::FileByFilename("envoy/service/ratelimit/v3/rls.proto".to_owned()),
            MessageRequest::FileByFilename("nothing.proto".to_owned()),
            MessageRequest::AllExtensionNumbersOfType("validate.FieldRules".to_owned()),
        ],
    )
    .await;
    let code = |answer: &ServerReflectionResponse| match &answer.message_response {
        Some(MessageResponse::ErrorResponse(error)) => error.error_code,
        Some(MessageResponse::FileDescriptorResponse(_)) => 0,
        other => panic!("{other:?}"),
    };
    assert_eq!(answers.iter().map(code).collect::<Vec<_>>(), [0, 5, 12]);
}

#[tokio::test]
async fn methods_and_messages_are_found_by_name() {
    let server = Server::start(EDGE).await;
    let names = [
        "RateLimitService.CheckRateLimit",
        "RateLimitService.Report",
        "RateLimitService.Reserve",
        "RateLimitService.Commit",
        "ReserveRequest",
        "ReserveResponse",
        "CommitRequest",
        "CommitResponse",
    ];
    let questions = names.map(|name| {
        let symbol = format!("kuadrant.service.ratelimit.v1.{name}");
        MessageRequest::FileContainingSymbol(symbol)
    });
    let answers = ask(&server, questions.to_vec()).await;
    for (answer, name) in answers.iter().zip(names) {
        let found = &answer.message_response;
        let is_file = matches!(found, Some(MessageResponse::FileDescriptorResponse(_)));
        assert!(is_file, "{name}: {found:?}");
    }
    assert_eq!(answers.len(), names.len());
}

#[tokio::test]
async fn the_older_protocol_version_gives_the_same_responses() {
    use v1alpha::server_reflection_client::ServerReflectionClient;
    use v1alpha::server_reflection_request::MessageRequest;
    let server = Server::start(EDGE).await;
    let mut client = ServerReflectionClient::new(server.channel().await);
    let question = v1alpha::ServerReflectionRequest {
        host: String::new(),
        message_request: Some(MessageRequest::ListServices(String::new())),
    };
    let answer = client.server_reflection_info(stream::iter([question]));
    let answer = in_time(answer)
        .await
        .unwrap()
        .into_inner()
        .message()
        .await
        .unwrap();
    assert!(answer.unwrap().encoded_len() > 100);
}
